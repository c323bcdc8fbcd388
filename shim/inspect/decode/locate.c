/*
 * Finds the parameters of a function when it calls the enter hook, for x86-64, System
 * V.
 *
 * Debug information does not help: compilers call the hook before the described
 * locations are filled.  So locate.c follows the few instructions from the entry to the
 * call, and tracks which registers and stack slots contain values from the entry
 * (entry_state).
 *
 * At a mark at the function's beginning, all values are where the convention puts them.
 * The code behind the mark then shows which ones the function uses (uses.c).
 */
#include "inspect/decode/decode.h"

#include "inspect/decode/entry_state.h"
#include "inspect/decode/instruction.h"
#include "inspect/decode/uses.h"

#include <shim/values.h>
#include <stddef.h>
#include <string.h>

#define STEPS_MAX   200 /* of all paths; the longest path seen took 35 */
#define CHOICES_MAX 4

struct way {
	uintptr_t at;
	struct state state;
};

struct walk {
	const struct decode_location *location;
	struct way way;
	struct way choices[CHOICES_MAX];
	unsigned choice_count, steps;
	struct state common; /* what is true on all paths */
	bool has_common, has_failed;
};

/* The target of a direct jump, or 0. */
static uintptr_t target_of(const struct instruction *follow_branch)
{
	const uintptr_t *slot;
	uintptr_t target;

	instruction_target(follow_branch, &target, &slot);
	return target;
}

/* --- paths --- */

static bool is_equal(const struct value *a, const struct value *b)
{
	return a->origin == b->origin && a->number == b->number &&
	       a->size == b->size && a->shift == b->shift;
}

static bool has_slot(const struct state *state, const struct slot *wanted)
{
	for (uint32_t i = 0; i < state->slot_count; i++) {
		const struct slot *slot = &state->slots[i];

		if (slot->base == wanted->base &&
		    slot->offset == wanted->offset &&
		    slot->size == wanted->size &&
		    is_equal(&slot->value, &wanted->value))
			return true;
	}
	return false;
}

/* The path has reached the hook's call.  Keeps only what is true on all paths. */
static void merge_path(struct walk *walk)
{
	struct state *state = &walk->way.state;
	struct state *common = &walk->common;
	uint32_t kept = 0;

	state_drop_below(state);
	if (!walk->has_common) {
		*common = *state;
		walk->has_common = true;
		return;
	}
	for (int i = 0; i < 2 * VECTOR; i++)
		if (!is_equal(&common->registers[i], &state->registers[i]))
			common->registers[i] = (struct value){
				.origin = UNKNOWN
			};
	for (uint32_t i = 0; i < common->slot_count; i++)
		if (has_slot(state, &common->slots[i]))
			common->slots[kept++] = common->slots[i];
	common->slot_count = kept;
	common->arguments_written |= state->arguments_written;
	common->is_foreign |= state->is_foreign;
	if (common->widest < state->widest)
		common->widest = state->widest;
}

static bool take_choice(struct walk *walk)
{
	if (walk->choice_count == 0)
		return false;
	walk->way = walk->choices[--walk->choice_count];
	return true;
}

static bool fail(struct walk *walk)
{
	walk->has_failed = true;
	return false;
}

/* Follows only forward jumps inside the function, so a loop before the hook's call
 * fails. */
static bool follow_branch(struct walk *walk,
			  const struct instruction *instruction, bool is_choice)
{
	uintptr_t target = target_of(instruction);

	if (target <= instruction->at || target >= walk->location->end)
		return fail(walk);
	if (!is_choice) {
		walk->way.at = target;
		return true;
	}
	if (walk->choice_count == CHOICES_MAX)
		return fail(walk);
	walk->choices[walk->choice_count] = walk->way;
	walk->choices[walk->choice_count++].at = target;
	return true;
}

static void note_width(struct state *state,
		       const struct instruction *instruction)
{
	for (unsigned i = 0; i < instruction->head.operand_count_visible; i++) {
		const ZydisDecodedOperand *operand = &instruction->operands[i];
		ZydisRegisterClass class;

		if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		class = ZydisRegisterGetClass(operand->reg.value);
		if (class == ZYDIS_REGCLASS_ZMM)
			state->widest = 64;
		else if (class == ZYDIS_REGCLASS_YMM && state->widest < 32)
			state->widest = 32;
	}
}

/* Takes one step.  False if no path is left to follow. */
static bool take_step(struct walk *walk)
{
	struct instruction instruction;

	if (walk->way.at < walk->location->function ||
	    walk->way.at >= walk->location->end ||
	    !instruction_decode(&instruction, walk->way.at))
		return fail(walk);
	walk->way.at = instruction_next(&instruction);
	if (walk->way.at == walk->location->hook) {
		if (instruction.head.meta.category != ZYDIS_CATEGORY_CALL)
			return fail(walk);
		merge_path(walk);
		return take_choice(walk);
	}
	if (instruction.head.meta.category == ZYDIS_CATEGORY_UNCOND_BR)
		return follow_branch(walk, &instruction, false);
	if (instruction.head.meta.category == ZYDIS_CATEGORY_COND_BR) {
		state_spoil(&walk->way.state,
			    &instruction); /* rcx, for `loop` */
		return follow_branch(walk, &instruction, true);
	}
	if (state_is_lost_by(&instruction))
		return fail(walk);
	note_width(&walk->way.state, &instruction);
	state_execute(&walk->way.state, &instruction);
	return true;
}

/* A compiler may turn a function that calls itself at its end into a loop around the
 * hook; later iterations then have other values than the entry. */
static bool is_jumped_into(const struct decode_location *location)
{
	uintptr_t at = location->hook;
	struct instruction instruction;

	while (at < location->end) {
		uintptr_t target;

		if (!instruction_decode(&instruction, at)) {
			at++; /* data between instructions */
			continue;
		}
		at = instruction_next(&instruction);
		if (instruction.head.meta.category !=
			    ZYDIS_CATEGORY_UNCOND_BR &&
		    instruction.head.meta.category != ZYDIS_CATEGORY_COND_BR)
			continue;
		target = target_of(&instruction);
		if (target > location->function && target < location->hook)
			return true;
	}
	return false;
}

static void begin_state(struct state *state)
{
	memset(state, 0, sizeof(*state));
	for (int i = 0; i < 2 * VECTOR; i++)
		state->registers[i] = (struct value){ ENTRY,
						      i < VECTOR ? 8 : 64, 0,
						      i };
	state->registers[SP] = (struct value){ ADDRESS, 8, 0, 0 };
}

static bool walk_to_hook(const struct decode_location *location,
			 struct state *common)
{
	static struct walk walk; /* too large for the stack */

	memset(&walk, 0, sizeof(walk));
	walk.location = location;
	walk.way.at = location->function;
	begin_state(&walk.way.state);
	while (take_step(&walk))
		if (++walk.steps > STEPS_MAX)
			return false;
	if (!walk.has_common || walk.has_failed || walk.common.is_foreign ||
	    is_jumped_into(location))
		return false;
	*common = walk.common;
	return true;
}

/* Executes the straight code at the beginning of a function with a mark there, from
 * @state, which has begun. */
static void walk_from_mark(const struct decode_location *location,
			   struct state *state)
{
	struct instruction instruction;
	uintptr_t at = location->entry, next;

	for (int i = 0;
	     i < STEPS_MAX && at && instruction_decode(&instruction, at); i++) {
		next = uses_next(location, &instruction);
		if (next == instruction_next(&instruction)) {
			if (instruction.head.meta.category ==
				    ZYDIS_CATEGORY_COND_BR ||
			    instruction.head.meta.category ==
				    ZYDIS_CATEGORY_UNCOND_BR ||
			    state_is_lost_by(&instruction))
				break;
			note_width(state, &instruction);
			state_execute(state, &instruction);
		}
		at = next;
	}
}

/* --- locations --- */

/* Registers that the hook can read: callee-saved ones, and argument registers except
 * the two with the hook's own arguments. */
static const uint8_t seen_registers[] = {
	3,	    5,		12,	    13,		14,	    15,
	2,	    1,		8,	    9,		VECTOR,	    VECTOR + 1,
	VECTOR + 2, VECTOR + 3, VECTOR + 4, VECTOR + 5, VECTOR + 6, VECTOR + 7
};
#define KEPT_COUNT 6
#define SEEN_COUNT (sizeof(seen_registers) / sizeof(seen_registers[0]))

/* Finds the stack pointer at the entry from the hook's registers. */
static bool find_frame(const struct state *state, struct decode_frame *frame)
{
	const struct value *value = &state->registers[SP];

	frame->number = SP;
	for (size_t i = 0; i < KEPT_COUNT && value->origin != ADDRESS; i++) {
		frame->number = seen_registers[i];
		value = &state->registers[frame->number];
	}
	frame->offset = (int32_t)-value->number;
	frame->is_known = value->origin == ADDRESS && value->size == 8;
	return frame->is_known;
}

static bool has_value(const struct value *value, int number, uint32_t size)
{
	return value->origin == ENTRY && value->number == number &&
	       value->shift == 0 && value->size >= size;
}

/* The number of bytes of register @number, from byte @shift on, in memory at
 * @offset. */
static uint32_t bytes_behind(const struct state *state, int number,
			     int64_t offset, uint32_t shift)
{
	for (uint32_t i = 0; i < state->slot_count; i++) {
		const struct slot *slot = &state->slots[i];

		if (slot->base == state->registers[SP].origin &&
		    slot->offset == offset && slot->value.origin == ENTRY &&
		    slot->value.number == number && slot->value.shift == shift)
			return slot->value.size;
	}
	return 0;
}

/* Whether the value is stored in the slot, in one piece or several. */
static bool is_stored_at(const struct state *state, const struct slot *slot,
			 int number, uint32_t size)
{
	uint32_t have = 0, more = 1;

	if (!has_value(&slot->value, number, 1))
		return false;
	for (; have < size && more > 0; have += more)
		more = bytes_behind(state, number, slot->offset + have, have);
	return have >= size;
}

/* Whether the register was copied, which shows that the function uses it. */
static bool is_copied(const struct state *state, int number)
{
	for (int i = 0; i < 2 * VECTOR; i++)
		if (i != number && has_value(&state->registers[i], number, 1))
			return true;
	for (uint32_t i = 0; i < state->slot_count; i++)
		if (has_value(&state->slots[i].value, number, 1))
			return true;
	return false;
}

/* Finds the value in seen_registers[@first] to [@last - 1]. */
static bool find_register(const struct state *state, int number, uint32_t size,
			  size_t first, size_t last, struct decode_place *place)
{
	for (size_t i = first; i < last; i++) {
		unsigned seen = seen_registers[i];

		if (!has_value(&state->registers[seen], number, size))
			continue;
		place->where = seen < VECTOR ? DECODE_IN_REGISTER :
					       DECODE_IN_VECTOR;
		place->number = (uint8_t)(seen % VECTOR);
		place->is_unused = !is_copied(state, number);
		return true;
	}
	return false;
}

/* Finds @size bytes of register @number at the entry.  Prefers callee-saved registers,
 * because a profiler may query after a call (shim_hook_defer). */
static struct decode_place find_place(const struct state *state, int number,
				      uint32_t size)
{
	const struct value *sp = &state->registers[SP];
	struct decode_place place = { .where = DECODE_NOWHERE,
				      .entry = (uint8_t)(number + 1) };

	if (find_register(state, number, size, 0, KEPT_COUNT, &place))
		return place;
	for (uint32_t i = 0; i < state->slot_count; i++) {
		const struct slot *slot = &state->slots[i];

		if (slot->base != sp->origin ||
		    !is_stored_at(state, slot, number, size))
			continue;
		place.where = DECODE_ABOVE_SP;
		place.offset = (int32_t)(slot->offset - sp->number);
	}
	if (place.where == DECODE_NOWHERE)
		find_register(state, number, size, KEPT_COUNT, SEEN_COUNT,
			      &place);
	return place;
}

/* --- stack arguments that the function reads --- */

/* Also the frame pointer, which the function may have restored where @common ends. */
static void follow_sp(struct state *state, const struct state *common,
		      const struct instruction *instruction)
{
	const ZydisDecodedOperand *operands = instruction->operands;
	struct value *sp = &state->registers[SP];

	switch (instruction->head.meta.category) {
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_UNCOND_BR: *sp = common->registers[SP]; return;
	default: break;
	}
	switch (instruction->head.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH: state_move_sp(state, -8); return;
	case ZYDIS_MNEMONIC_POP: state_move_sp(state, 8); return;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_LEA:
		if (instruction_register_number(operands[0].reg.value) == SP)
			state_execute(state, instruction);
		return;
	case ZYDIS_MNEMONIC_MOV:
		if (instruction_is_register(&operands[0], ZYDIS_REGISTER_RBP) &&
		    instruction_is_register(&operands[1], ZYDIS_REGISTER_RSP))
			state_execute(state, instruction);
		return;
	default: return;
	}
}

static bool reads(const struct state *state,
		  const struct instruction *instruction, int64_t offset,
		  uint32_t size)
{
	bool is_lea = instruction->head.mnemonic == ZYDIS_MNEMONIC_LEA;
	struct value place;

	for (unsigned i = 0; i < instruction->head.operand_count; i++) {
		const ZydisDecodedOperand *operand = &instruction->operands[i];

		if (!operand_is_memory(operand) ||
		    !state_find_place(state, operand, &place) ||
		    place.origin != ADDRESS ||
		    (!is_lea &&
		     !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ)))
			continue;
		if (place.number < offset + size &&
		    place.number + (is_lea ? 1 : operand_bytes(operand)) >
			    offset)
			return true;
	}
	return false;
}

/*
 * Whether code of the function reads these bytes of the stack or takes their address.
 * Reads the code in the order of addresses, without regard to jumps.  If no code reads
 * them, the argument is unavailable.
 */
static bool is_read(const struct decode_location *location,
		    const struct state *common, int64_t offset, uint32_t size)
{
	static struct state state;
	struct instruction instruction;
	uintptr_t at = location->function;

	memset(&state, 0, sizeof(state));
	state.registers[SP] = (struct value){ ADDRESS, 8, 0, 0 };
	state.registers[BP] = common->registers[BP];
	if (location->entry)
		at = location->entry;
	for (; at && at != location->end;
	     at = uses_next(location, &instruction)) {
		if (!instruction_decode(&instruction, at) ||
		    (at < location->end &&
		     instruction_next(&instruction) > location->end))
			return false;
		if (reads(&state, &instruction, offset, size))
			return true;
		if (uses_next(location, &instruction) ==
		    instruction_next(&instruction))
			follow_sp(&state, common, &instruction);
	}
	return false;
}

/* --- the calling convention --- */

/* The registers and the stack that are still free. */
struct convention {
	const struct decode_location *location;
	const struct state *state;
	bool has_frame;
	unsigned integers, vectors;
	int32_t stack;
	bool is_lost, is_stack_lost, are_vectors_lost;
	uint32_t used; /* registers that the function reads (uses.h) */
};

static const uint8_t integer_registers[] = { 7, 6, 2, 1, 8, 9 };

/* The argument register @number at a mark at the beginning. */
static struct decode_place place_at_mark(const struct convention *convention,
					 int number)
{
	struct decode_place place = {
		.where = DECODE_AT_ENTRY,
		.number = (uint8_t)(number - VECTOR + DECODE_ENTRY_VECTOR),
		.entry = (uint8_t)(number + 1),
		.is_unused = !(convention->used & 1u << number),
	};

	if (number < VECTOR)
		for (place.number = 0;
		     integer_registers[place.number] != number;)
			place.number++;
	return place;
}

static struct decode_place locate_register(const struct convention *convention,
					   int number, uint32_t size)
{
	return convention->location->entry ?
		       place_at_mark(convention, number) :
		       find_place(convention->state, number, size);
}

/* Whether callers may omit the argument if the function does not read it. */
static bool may_lack(const struct convention *convention,
		     const struct prototype_value *value)
{
	return value->is_optional ||
	       (convention->location->entry && value->is_local);
}

/* The caller may omit an argument on the stack that the function does not read. */
static bool is_unused(const struct convention *convention,
		      const struct prototype_value *value)
{
	return may_lack(convention, value) &&
	       !convention->location->is_complete &&
	       !is_read(convention->location, convention->state,
			convention->stack, value->size);
}

static void locate_on_stack(struct convention *convention,
			    const struct prototype_value *value,
			    bool is_aligned, struct decode_places *places)
{
	/* Arguments follow the return address, whose address is 8 modulo 16. */
	if (is_aligned)
		convention->stack = (convention->stack - 8 + 15) / 16 * 16 + 8;
	places->in_memory = true;
	convention->is_stack_lost |= value->is_odd;
	if (convention->is_stack_lost)
		places->reason = SHIM_UNAVAILABLE_NOT_UNDERSTOOD;
	else if (!convention->has_frame)
		places->reason = SHIM_UNAVAILABLE_CODE;
	else if (convention->state->arguments_written)
		places->reason = SHIM_UNAVAILABLE_CLOBBERED;
	else
		places->eightbytes[0] = (struct decode_place){
			.where = DECODE_ON_STACK,
			.offset = convention->stack,
			.is_unused = is_unused(convention, value),
		};
	if (places->eightbytes[0].where && convention->location->entry) {
		places->eightbytes[0].where = DECODE_ABOVE_ENTRY;
		places->eightbytes[0].offset -= 8;
	}
	convention->stack += (int32_t)((value->size + 7) / 8 * 8);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* A value whose eightbytes are both in one vector register. */
static void find_whole(const struct convention *convention, int number,
		       struct decode_places *places)
{
	struct decode_place place = locate_register(convention, number, 16);

	places->eightbytes[0] = places->eightbytes[1] = place;
	places->eightbytes[1].offset += 8;
}

/* One eightbyte of a split number. */
static void locate_half(struct convention *convention,
			const struct prototype_value *value,
			struct decode_places *places, int i)
{
	static const struct prototype_value half = { .size = 8 };
	struct decode_places stack = { .in_memory = true };
	struct prototype_value part = half;

	if (convention->integers < 6) {
		places->eightbytes[i] = locate_register(
			convention, integer_registers[convention->integers++],
			8);
		places->eightbytes[i].is_unused &= may_lack(convention, value);
		return;
	}
	part.is_optional = value->is_optional;
	part.is_local = value->is_local;
	locate_on_stack(convention, &part, false, &stack);
	places->eightbytes[i] = stack.eightbytes[0];
	if (stack.eightbytes[0].where == DECODE_NOWHERE)
		places->reason = stack.reason;
}

/* The bytes to find: compilers need not copy the padding of an eightbyte. */
static uint32_t bytes_used(const struct prototype_value *value, int i,
			   uint32_t left)
{
	return smaller(left, value->used[i] ? value->used[i] : 8);
}

/* Finds a value in registers, which hold all of it or nothing. */
static void locate_in_registers(struct convention *convention,
				const struct prototype_value *value,
				struct decode_places *places)
{
	unsigned integers = 0, vectors = 0;
	uint32_t left = value->size;

	for (int i = 0; i < 2; i++) {
		integers += value->classes[i] == PROTOTYPE_INTEGER;
		vectors += value->classes[i] == PROTOTYPE_SSE;
	}
	if (value->is_whole)
		vectors = 1;
	places->reason = SHIM_UNAVAILABLE_OPTIMIZED_OUT;
	if (value->is_split) {
		locate_half(convention, value, places, 0);
		locate_half(convention, value, places, 1);
		return;
	}
	if (vectors > 0 && convention->are_vectors_lost) {
		/* Without a register for the other half, the value is in memory. */
		convention->is_lost = integers > 0;
		places->reason = SHIM_UNAVAILABLE_NOT_UNDERSTOOD;
		return;
	}
	if (convention->integers + integers > 6 ||
	    convention->vectors + vectors > 8) {
		/* One half may be in the last register. */
		convention->is_lost = value->is_odd;
		locate_on_stack(convention, value, value->is_aligned, places);
		return;
	}
	for (int i = 0; i < 2 && value->classes[i]; i++) {
		int number = value->classes[i] == PROTOTYPE_INTEGER ?
				     integer_registers[convention->integers++] :
				     VECTOR + (int)convention->vectors++;

		if (value->is_whole)
			find_whole(convention, number, places);
		else
			places->eightbytes[i] = locate_register(
				convention, number, bytes_used(value, i, left));
		for (int k = 0; k < 2; k++)
			places->eightbytes[k].is_unused &= may_lack(convention,
								    value);
		left -= smaller(left, 8);
		if (value->is_whole)
			break;
	}
}

/*
 * A vector is in one register if the function is compiled for a processor with
 * registers of that width, which its use of one shows.  Otherwise the locations of
 * later values in vector registers and in memory are unknown.
 */
static void locate_vector(struct convention *convention,
			  const struct prototype_value *value,
			  struct decode_places *places)
{
	struct decode_place place;

	places->reason = SHIM_UNAVAILABLE_NOT_UNDERSTOOD;
	if (convention->state->widest < value->size ||
	    convention->vectors == 8) {
		convention->are_vectors_lost = convention->vectors < 8;
		convention->is_stack_lost = true;
		return;
	}
	if (convention->are_vectors_lost)
		return;
	place = find_place(convention->state,
			   VECTOR + (int)convention->vectors++, value->size);
	/* The hook, and a mark, can read 16 bytes of a vector register. */
	if (convention->location->entry)
		return;
	if (place.where != DECODE_ABOVE_SP) {
		places->reason = SHIM_UNAVAILABLE_OPTIMIZED_OUT;
		return;
	}
	places->in_memory = true;
	places->eightbytes[0] = place;
}

static void locate_argument(struct convention *convention,
			    const struct prototype_value *value,
			    struct decode_places *places)
{
	const struct prototype_value address = {
		.size = 8,
		.kind = PROTOTYPE_REGISTERS,
		.classes = { PROTOTYPE_INTEGER },
		/* Callers may leave an object unset that the function does not read. */
		.is_optional = !convention->location->entry ||
			       value->is_optimized,
	};

	switch (value->kind) {
	case PROTOTYPE_NOTHING: break;
	case PROTOTYPE_REGISTERS:
		locate_in_registers(convention, value, places);
		break;
	case PROTOTYPE_MEMORY:
		locate_on_stack(convention, value, value->is_aligned, places);
		break;
	case PROTOTYPE_X87:
		locate_on_stack(convention, value, true, places);
		break;
	case PROTOTYPE_REFERENCE:
		locate_in_registers(convention, &address, places);
		/* The address may be on the stack; the object is elsewhere. */
		break;
	default:
		if (value->is_vector)
			locate_vector(convention, value, places);
		else
			convention->is_lost = true;
	}
}

static enum shim_unavailable reason_of(const struct decode_location *location)
{
	return location->hook <= location->function ||
			       location->hook > location->end ?
		       SHIM_UNAVAILABLE_INLINED :
		       SHIM_UNAVAILABLE_CODE;
}

static void set_reasons(const struct decode_location *location,
			enum shim_unavailable reason,
			struct decode_places *places)
{
	for (uint32_t i = 1; i < location->count; i++)
		places[i].reason = (uint8_t)reason;
}

/* False if other code has come before the mark. */
static bool begin_at_mark(struct convention *convention, struct state *state)
{
	const struct decode_location *location = convention->location;
	struct decode_location behind = *location;

	if (location->is_late && !uses_keep_arguments(location))
		return false;
	convention->has_frame = true;
	convention->used = UINT32_MAX;
	begin_state(state);
	if (location->is_complete)
		return true;
	convention->used = uses_at_entry(location);
	walk_from_mark(location, state);
	if (location->is_late) {
		behind.entry = location->hook;
		convention->used |= uses_at_entry(&behind);
		walk_from_mark(&behind, state);
	}
	state->arguments_written = false; /* by code behind the mark */
	return true;
}

void decode_arguments(const struct decode_location *location,
		      struct decode_frame *frame, struct decode_places *places)
{
	static struct state state;
	struct convention convention = {
		.location = location,
		.state = &state,
		.stack = 8,
	};

	memset(places, 0, location->count * sizeof(*places));
	memset(frame, 0, sizeof(*frame));
	if (location->entry && !begin_at_mark(&convention, &state)) {
		set_reasons(location, SHIM_UNAVAILABLE_CODE, places);
		return;
	}
	if (location->entry) {
		/* All is known. */
	} else if (!walk_to_hook(location, &state)) {
		set_reasons(location, reason_of(location), places);
		return;
	} else {
		convention.has_frame = find_frame(&state, frame);
		frame->is_overwritten = state.arguments_written;
		for (size_t i = 0; i < KEPT_COUNT; i++)
			frame->kept[i] = find_place(&state, seen_registers[i],
						    8);
	}
	set_reasons(location,
		    state.is_foreign ? SHIM_UNAVAILABLE_CODE :
				       SHIM_UNAVAILABLE_NOT_UNDERSTOOD,
		    places);
	convention.is_lost = state.is_foreign;
	/* The caller passes the address for a large result. */
	if (location->values[0].kind == PROTOTYPE_MEMORY ||
	    location->values[0].kind == PROTOTYPE_REFERENCE)
		convention.integers = 1;
	convention.is_lost |= location->values[0].kind == PROTOTYPE_UNKNOWN &&
			      !(location->values[0].is_vector &&
				state.widest >= location->values[0].size);
	for (uint32_t i = 1; i < location->count && !convention.is_lost; i++)
		locate_argument(&convention, &location->values[i], &places[i]);
}
