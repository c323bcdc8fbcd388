/*
 * The System V calling convention of x86-64: six integer registers, eight vector registers,
 * then the stack.
 */
#include "inspect/entry_values.h"

#include <shim/banned.h>

#define INTEGERS 6
#define VECTORS	 8

struct used {
	uint32_t integers, vectors, stack;
};

static void put_register(struct decode_place *place, size_t offset)
{
	place->where = DECODE_AT_ENTRY;
	place->offset = (int32_t)offset;
}

static void put_integer(struct used *used, struct decode_place *place)
{
	put_register(place, offsetof(struct arch_entry, integers) +
				    8 * used->integers++);
}

static void put_on_stack(struct used *used, struct part *part)
{
	if (part->value.is_aligned)
		used->stack = (used->stack + 15) & ~15u;
	part->places.in_memory = true;
	part->places.eightbytes[0].where = DECODE_ABOVE_ENTRY;
	part->places.eightbytes[0].offset = (int32_t)used->stack;
	used->stack += (part->value.size + 7) & ~7u;
}

static bool put_in_registers(struct used *used, struct part *part)
{
	uint32_t count = (part->value.size + 7) / 8, integers = 0, vectors = 0;

	for (uint32_t i = 0; i < count; i++) {
		integers += part->value.classes[i] == PROTOTYPE_INTEGER;
		vectors += part->value.classes[i] == PROTOTYPE_SSE;
	}
	if (used->integers + integers > INTEGERS ||
	    used->vectors + vectors > VECTORS)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		struct decode_place *place = &part->places.eightbytes[i];

		if (part->value.classes[i] == PROTOTYPE_INTEGER)
			put_integer(used, place);
		else
			put_register(place,
				     offsetof(struct arch_entry, vectors) +
					     16 * used->vectors++);
	}
	return true;
}

/* False: it and all that follow are unknown. */
static bool put_part(struct used *used, struct part *part)
{
	const struct prototype_value *value = &part->value;

	if (value->is_wide || value->is_vector || value->is_whole ||
	    value->is_split || value->is_odd)
		return false;
	switch (value->kind) {
	case PROTOTYPE_NOTHING: return true;
	case PROTOTYPE_REFERENCE:
		if (used->integers == INTEGERS)
			return false;
		put_integer(used, &part->places.eightbytes[0]);
		return true;
	case PROTOTYPE_REGISTERS:
		if (value->size > 16)
			return false;
		if (!put_in_registers(used, part))
			put_on_stack(used, part);
		return true;
	case PROTOTYPE_MEMORY:
	case PROTOTYPE_X87: put_on_stack(used, part); return true;
	default: return false;
	}
}

void entry_values_locate(struct recipe *recipe,
			 const struct prototype_value *result)
{
	struct used used = { .integers = result->kind == PROTOTYPE_MEMORY };

	for (uint32_t i = 0; i < recipe->count; i++)
		recipe->parts[i].places.reason =
			SHIM_UNAVAILABLE_NOT_UNDERSTOOD;
	for (uint32_t i = 0; i < recipe->count; i++)
		if (!put_part(&used, &recipe->parts[i]))
			break;
}
