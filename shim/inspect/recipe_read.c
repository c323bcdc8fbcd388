/*
 * Reads arguments by a recipe, from the registers and the stack at the hook.
 */
#include "inspect/recipe.h"

#include <shim/banned.h>

int recipe_kept_index(unsigned number)
{
	static const uint8_t kept[] = { 3, 5, 12, 13, 14, 15 };

	for (int i = 0; i < 6; i++)
		if (kept[i] == number)
			return i;
	return -1;
}

static bool read_register(const struct arch_frame *frame, unsigned number,
			  uintptr_t *value)
{
	if (number == DECODE_SP) {
		*value = ARCH_FRAME_CFA(frame);
		return true;
	}
	return arch_frame_register(frame, number, value);
}

/* A value of four bytes may be aligned to four bytes. */
static void load(uintptr_t address, uintptr_t *value)
{
	__builtin_memcpy(value, (const void *)address, sizeof(*value));
}

/* An argument register at the function's beginning. */
static bool read_entry(const struct arch_frame *frame,
		       const struct decode_place *place, uintptr_t *value)
{
	const struct arch_entry *entry = arch_frame_entry(frame);

	if (!entry)
		return false;
	if (place->number < DECODE_ENTRY_VECTOR)
		*value = entry->integers[place->number];
	else
		load((uintptr_t)entry->vectors[place->number -
					       DECODE_ENTRY_VECTOR] +
			     (uintptr_t)place->offset,
		     value);
	return true;
}

static bool read_place(const struct recipe_reader *reader,
		       const struct decode_place *place, uintptr_t *value)
{
	const unsigned char *vector;

	switch (place->where) {
	case DECODE_AT_ENTRY: return read_entry(reader->frame, place, value);
	case DECODE_ABOVE_ENTRY:
		if (!arch_frame_entry(reader->frame))
			return false;
		load(arch_frame_entry(reader->frame)->stack +
			     (uintptr_t)place->offset,
		     value);
		return true;
	case DECODE_IN_REGISTER:
		return read_register(reader->frame, place->number, value);
	case DECODE_IN_VECTOR:
		vector = arch_frame_at(reader->frame, place->number, true);
		if (!vector)
			return false;
		__builtin_memcpy(value, vector + place->offset, 8);
		return true;
	case DECODE_ON_STACK:
		if (!reader->has_base)
			return false;
		load(reader->base + (uintptr_t)place->offset, value);
		return true;
	case DECODE_ABOVE_SP:
		load(ARCH_FRAME_CFA(reader->frame) + (uintptr_t)place->offset,
		     value);
		return true;
	default: return false;
	}
}

void recipe_begin_reader(struct recipe_reader *reader,
			 const struct arch_frame *frame,
			 const struct recipe *recipe)
{
	reader->frame = frame;
	reader->recipe = recipe;
	reader->has_base = recipe->frame.is_known &&
			   read_register(frame, recipe->frame.number,
					 &reader->base);
	reader->base += (uintptr_t)recipe->frame.offset;
}

bool recipe_is_called_by(const struct arch_frame *frame,
			 const struct recipe *recipe)
{
	struct recipe_reader reader = { .frame = frame };
	uintptr_t value;

	if (recipe->guard == 0)
		return true;
	recipe_begin_reader(&reader, frame, recipe);
	return read_place(&reader,
			  &recipe->frame.kept[recipe_kept_index(recipe->guard)],
			  &value) &&
	       value == recipe->cached.function;
}

/* --- the caller's expressions --- */

static uintptr_t combine(const struct callsite_step *step, uintptr_t a,
			 uintptr_t b)
{
	switch (step->operation) {
	case CALLSITE_PLUS: return a + b;
	case CALLSITE_MINUS: return a - b;
	case CALLSITE_MULTIPLY: return a * b;
	case CALLSITE_AND: return a & b;
	case CALLSITE_OR: return a | b;
	case CALLSITE_XOR: return a ^ b;
	case CALLSITE_SHIFT_LEFT: return b < 64 ? a << b : 0;
	case CALLSITE_SHIFT_RIGHT: return b < 64 ? a >> b : 0;
	default: /* CALLSITE_SHIFT_SIGNED */
		return (uintptr_t)((intptr_t)a >> (b < 64 ? b : 63));
	}
}

/* libshim-debuginfo.so has checked that the address is in the frame. */
static uintptr_t load_number(uintptr_t address, uint32_t size)
{
	uintptr_t value = 0;

	__builtin_memcpy(&value, (const void *)address, size);
	return value;
}

/* Stores the number that @step pushes in *@value; false if it is unavailable. */
static bool read_operand(const struct recipe_reader *reader,
			 const struct callsite_step *step, uintptr_t *value)
{
	const struct decode_place *kept = reader->recipe->frame.kept;

	*value = 0;
	if (step->operation == CALLSITE_SP)
		*value = reader->base + 8;
	if (step->operation == CALLSITE_REGISTER &&
	    !read_place(reader, &kept[recipe_kept_index(step->number)], value))
		return false;
	*value += (uintptr_t)step->value;
	return true;
}

static bool evaluate(const struct recipe_reader *reader,
		     const struct callsite_value *passed, uintptr_t *value)
{
	uintptr_t stack[CALLSITE_DEPTH_MAX + 1];
	uint32_t depth = 0;

	for (uint32_t i = 0; i < passed->count; i++) {
		const struct callsite_step *step = &passed->steps[i];

		switch (step->operation) {
		case CALLSITE_CONSTANT:
		case CALLSITE_REGISTER:
		case CALLSITE_SP:
			if (depth == CALLSITE_DEPTH_MAX ||
			    !read_operand(reader, step, &stack[depth++]))
				return false;
			break;
		case CALLSITE_LOAD:
			stack[depth - 1] = load_number(stack[depth - 1],
						       step->number);
			break;
		case CALLSITE_NEGATE:
			stack[depth - 1] = -stack[depth - 1];
			break;
		case CALLSITE_NOT: stack[depth - 1] = ~stack[depth - 1]; break;
		default:
			depth--;
			stack[depth - 1] = combine(step, stack[depth - 1],
						   stack[depth]);
		}
	}
	*value = stack[0];
	return depth == 1;
}

static bool read_eightbyte(const struct recipe_reader *reader,
			   const struct part *part, uint32_t i,
			   uintptr_t *value)
{
	const struct decode_place *place = &part->places.eightbytes[i];

	if (place->where == DECODE_NOWHERE && part->has_passed)
		return evaluate(reader, &part->passed[i], value);
	return read_place(reader, place, value);
}

uintptr_t recipe_read(const struct recipe_reader *reader,
		      const struct part *part, unsigned char *spilled)
{
	const struct decode_place *places = part->places.eightbytes;
	uintptr_t value;

	if (part->places.reason != SHIM_AVAILABLE)
		return 0;
	if (part->value.kind == PROTOTYPE_NOTHING) {
		/* The part consists of padding only. */
		__builtin_memset(spilled, 0, REGISTER_MAX);
		return (uintptr_t)spilled;
	}
	if (part->value.kind == PROTOTYPE_REFERENCE)
		return read_eightbyte(reader, part, 0, &value) ? value : 0;
	if (places[0].where == DECODE_ABOVE_ENTRY)
		return arch_frame_entry(reader->frame) ?
			       arch_frame_entry(reader->frame)->stack +
				       (uintptr_t)places[0].offset :
			       0;
	if (part->places.in_memory && places[0].where == DECODE_ABOVE_SP)
		return ARCH_FRAME_CFA(reader->frame) +
		       (uintptr_t)places[0].offset;
	if (part->places.in_memory)
		return reader->has_base ?
			       reader->base + (uintptr_t)places[0].offset :
			       0;
	for (uint32_t i = 0; i * 8 < part->value.size; i++) {
		if (!read_eightbyte(reader, part, i, &value))
			return 0;
		__builtin_memcpy(spilled + i * 8, &value, 8);
	}
	return (uintptr_t)spilled;
}

uintptr_t recipe_find_memory(const struct arch_frame *frame,
			     const struct recipe *recipe,
			     const struct part *part)
{
	struct recipe_reader reader = { .frame = frame };

	if (part->value.kind != PROTOTYPE_REFERENCE && !part->places.in_memory)
		return 0;
	recipe_begin_reader(&reader, frame, recipe);
	return recipe_read(&reader, part, NULL);
}
