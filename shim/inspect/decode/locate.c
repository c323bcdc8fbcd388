/*
 * Finds the parameters of a function when it calls the enter hook, for x86-64, System
 * V.
 *
 * Debug information does not help: compilers call the hook before the places it
 * describes are filled.  So this follows the few instructions from the entry to the
 * call, and tracks which registers and stack slots contain values from the entry.
 * Nothing is guessed: the operands that an unsupported instruction writes become
 * unknown.
 *
 * A value is identified by its place at the entry: a register, or an offset from the
 * stack pointer.  @size of its bytes are valid, from the lowest.
 */
#include "inspect/decode/decode.h"

#include "inspect/decode/instruction.h"

#include <shim/values.h>
#include <stddef.h>
#include <string.h>

#define STEPS_MAX   200 /* of all paths; the longest path seen took 35 */
#define CHOICES_MAX 4
#define SLOTS_MAX   64
#define SP	    DECODE_SP
#define BP	    5
#define VECTOR	    16 /* number of the first vector register */

enum origin {
	UNKNOWN,
	ENTRY,	 /* register @number at the entry */
	ADDRESS, /* the stack pointer at the entry, plus @number */
	ALIGNED, /* the stack pointer after its alignment, plus @number */
	ZERO,
};

struct value {
	enum origin origin;
	uint32_t size;	/* known bytes, from the lowest */
	uint32_t shift; /* bytes of the register below the lowest */
	int64_t number;
};

struct slot {
	enum origin base; /* ADDRESS or ALIGNED */
	int64_t offset;
	uint32_t size;
	struct value value;
};

struct state {
	struct value registers[2 * VECTOR];
	struct slot slots[SLOTS_MAX];
	uint32_t slot_count;
	bool arguments_written; /* the function wrote to its stack arguments */
	bool is_foreign;	/* not the System V calling convention */
	uint32_t widest;	/* bytes of the widest vector register in use */
};

struct way {
	uintptr_t at;
	struct state state;
};

struct unwind {
	const struct decode_location *location;
	struct way way;
	struct way choices[CHOICES_MAX];
	unsigned choice_count, steps;
	struct state met; /* what is true on all paths */
	bool has_met, has_failed;
};

/* --- instructions --- */

static bool is_high_byte(ZydisRegister given)
{
	return given >= ZYDIS_REGISTER_AH && given <= ZYDIS_REGISTER_BH;
}

static bool is_memory(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_MEMORY;
}

/* The target of a direct jump, or 0. */
static uintptr_t target_of(const struct instruction *branch)
{
	const uintptr_t *slot;
	uintptr_t target;

	instruction_target(branch, &target, &slot);
	return target;
}

/* --- memory --- */

/* The place of a memory operand, if it is in the frame. */
static bool place_of(const struct state *state,
		     const ZydisDecodedOperand *operand, struct value *place)
{
	int base = instruction_register_number(operand->mem.base);

	if (operand->mem.index != ZYDIS_REGISTER_NONE || base < 0 ||
	    base >= VECTOR ||
	    ZydisRegisterGetClass(operand->mem.base) != ZYDIS_REGCLASS_GPR64 ||
	    operand->mem.segment == ZYDIS_REGISTER_FS ||
	    operand->mem.segment == ZYDIS_REGISTER_GS)
		return false;
	*place = state->registers[base];
	if ((place->origin != ADDRESS && place->origin != ALIGNED) ||
	    place->size < 8)
		return false;
	if (operand->mem.disp.has_displacement)
		place->number += operand->mem.disp.value;
	return true;
}

static bool overlaps(const struct slot *slot, const struct value *place,
		     uint32_t size)
{
	/* The distance of the two bases is unknown, so the places may overlap;
	 * both are below the caller's frame. */
	if (slot->base != place->origin)
		return true;
	return slot->offset < place->number + size &&
	       place->number < slot->offset + slot->size;
}

static void forget_memory(struct state *state)
{
	state->slot_count = 0;
	state->arguments_written = true;
}

static void store(struct state *state, const struct value *place, uint32_t size,
		  const struct value *value)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < state->slot_count; i++)
		if (!overlaps(&state->slots[i], place, size))
			state->slots[kept++] = state->slots[i];
	state->slot_count = kept;
	/* A function that saves one of these is declared ms_abi. */
	if (value->origin == ENTRY && value->number >= VECTOR + 8)
		state->is_foreign = true;
	/* Also if it overwrites the return address, which no normal function
	 * does. */
	if (place->origin == ADDRESS && place->number + size > 0)
		state->arguments_written = true;
	if (value->origin == UNKNOWN || value->origin == ZERO ||
	    kept == SLOTS_MAX)
		return;
	state->slots[kept] = (struct slot){ place->origin, place->number, size,
					    *value };
	if (state->slots[kept].value.size > size)
		state->slots[kept].value.size = size;
	state->slot_count++;
}

static struct value load(const struct state *state, const struct value *place,
			 uint32_t size)
{
	struct value value = { .origin = UNKNOWN };

	for (uint32_t i = 0; i < state->slot_count; i++) {
		const struct slot *slot = &state->slots[i];

		if (slot->base != place->origin ||
		    slot->offset != place->number)
			continue;
		value = slot->value;
		if (value.size > size)
			value.size = size;
	}
	return value;
}

/* --- effects of instructions --- */

static const struct value unknown = { .origin = UNKNOWN };

static uint32_t bytes_of(const ZydisDecodedOperand *operand)
{
	return operand->size / 8;
}

static struct value read(const struct state *state,
			 const ZydisDecodedOperand *operand)
{
	struct value value = unknown, place;
	int number;

	if (is_memory(operand)) {
		if (place_of(state, operand, &place))
			value = load(state, &place, bytes_of(operand));
		return value;
	}
	if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return value;
	number = instruction_register_number(operand->reg.value);
	if (number < 0)
		return value;
	value = state->registers[number];
	if (is_high_byte(operand->reg.value)) {
		if (value.origin != ENTRY || value.size < 2)
			return unknown;
		value.shift++;
	}
	if (value.size > bytes_of(operand))
		value.size = bytes_of(operand);
	return value;
}

/* A part of an address is unknown. */
static void write(struct state *state, const ZydisDecodedOperand *operand,
		  struct value value)
{
	struct value place;
	int number;

	if ((value.origin == ADDRESS || value.origin == ALIGNED) &&
	    value.size < 8)
		value = unknown;
	if (is_memory(operand)) {
		if (place_of(state, operand, &place) && operand->size > 0)
			store(state, &place, bytes_of(operand), &value);
		else
			forget_memory(state);
		return;
	}
	if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return;
	number = instruction_register_number(operand->reg.value);
	if (number >= 0)
		state->registers[number] = is_high_byte(operand->reg.value) ?
						   unknown :
						   value;
}

static void move_sp(struct state *state, int64_t by)
{
	struct value *sp = &state->registers[SP];

	if (sp->origin == ADDRESS || sp->origin == ALIGNED)
		sp->number += by;
}

/* The top of the stack. */
static bool top(const struct state *state, struct value *place)
{
	*place = state->registers[SP];
	return place->origin == ADDRESS || place->origin == ALIGNED;
}

/* The stack pointer changed by an unknown amount. */
static void lose_sp(struct state *state)
{
	state->registers[SP] = unknown;
	forget_memory(state);
}

static void push(struct state *state, const struct instruction *instruction)
{
	struct value value = read(state, &instruction->operands[0]), place;

	if (instruction->head.operand_width != 64) {
		lose_sp(state);
		return;
	}
	move_sp(state, -8);
	if (top(state, &place))
		store(state, &place, 8, &value);
	else
		forget_memory(state);
}

static void pop(struct state *state, const struct instruction *instruction)
{
	struct value value = unknown, place;

	if (instruction->head.operand_width != 64) {
		write(state, &instruction->operands[0], unknown);
		lose_sp(state);
		return;
	}
	if (top(state, &place))
		value = load(state, &place, 8);
	move_sp(state, 8);
	write(state, &instruction->operands[0], value);
}

/* All operands that the instruction writes become unknown. */
static void spoil(struct state *state, const struct instruction *instruction)
{
	for (unsigned i = 0; i < instruction->head.operand_count; i++) {
		const ZydisDecodedOperand *operand = &instruction->operands[i];

		if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			write(state, operand, unknown);
	}
	/* The instruction may have written to the stack. */
	if (state->registers[SP].origin == UNKNOWN)
		forget_memory(state);
}

/* Whether the instruction has effects on registers or memory that are not tracked. */
static bool is_too_much(const struct instruction *instruction)
{
	switch (instruction->head.meta.category) {
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSTEM:
	case ZYDIS_CATEGORY_STRINGOP:
	case ZYDIS_CATEGORY_INTERRUPT: return true;
	default: break;
	}
	switch (instruction->head.mnemonic) {
	case ZYDIS_MNEMONIC_LEAVE:
	case ZYDIS_MNEMONIC_ENTER:
	case ZYDIS_MNEMONIC_VZEROALL:
	case ZYDIS_MNEMONIC_XBEGIN:
	case ZYDIS_MNEMONIC_FXRSTOR:
	case ZYDIS_MNEMONIC_FXRSTOR64:
	case ZYDIS_MNEMONIC_XRSTOR:
	case ZYDIS_MNEMONIC_XRSTOR64: return true;
	default: return instruction->head.attributes & ZYDIS_ATTRIB_HAS_REP;
	}
}

static void add(struct state *state, const struct instruction *instruction,
		int sign)
{
	const ZydisDecodedOperand *to = &instruction->operands[0];
	const ZydisDecodedOperand *by = &instruction->operands[1];
	struct value value = unknown;

	if (to->type == ZYDIS_OPERAND_TYPE_REGISTER && to->size == 64 &&
	    by->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		value = read(state, to);
		if (value.origin == ADDRESS || value.origin == ALIGNED)
			value.number += sign * by->imm.value.s;
		else
			value = unknown;
	}
	write(state, to, value);
}

static void lea(struct state *state, const struct instruction *instruction)
{
	struct value place = unknown;

	if (!place_of(state, &instruction->operands[1], &place) ||
	    instruction->operands[0].size != 64)
		place = unknown;
	write(state, &instruction->operands[0], place);
}

/* Drops slots below the stack pointer, which a call overwrites. */
static void drop_below(struct state *state)
{
	const struct value *sp = &state->registers[SP];
	uint32_t kept = 0;

	for (uint32_t i = 0; i < state->slot_count; i++) {
		const struct slot *slot = &state->slots[i];

		/* Slots of the other base are above the aligned stack pointer. */
		if (slot->base == sp->origin ? slot->offset >= sp->number :
					       sp->origin == ALIGNED)
			state->slots[kept++] = *slot;
	}
	state->slot_count = kept;
}

static bool is_zero(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	       operand->imm.value.u == 0;
}

static const struct value zero = { .origin = ZERO, .size = 8 };

/* A shift by whole bytes, by which gcc stores the end of a structure. */
static void shift_right(struct state *state,
			const struct instruction *instruction)
{
	const ZydisDecodedOperand *to = &instruction->operands[0];
	const ZydisDecodedOperand *by = &instruction->operands[1];
	struct value value = read(state, to);
	uint32_t bytes = (uint32_t)(by->imm.value.u / 8);

	if (by->type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
	    by->imm.value.u % 8 != 0 || value.origin != ENTRY ||
	    value.number >= VECTOR || by->imm.value.u / 8 >= value.size) {
		spoil(state, instruction);
		return;
	}
	value.shift += bytes;
	value.size -= bytes;
	write(state, to, value);
}

static void unite(struct state *state, const struct instruction *instruction)
{
	struct value a = read(state, &instruction->operands[0]);
	struct value b = read(state, &instruction->operands[1]);

	if (a.origin == ZERO && a.size >= b.size)
		write(state, &instruction->operands[0], b);
	else if (b.origin != ZERO || b.size < a.size)
		spoil(state, instruction);
}

/* `and $-32, %rsp`; supported once. */
static void align(struct state *state, const struct instruction *instruction)
{
	const ZydisDecodedOperand *to = &instruction->operands[0];
	bool is_sp = to->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		     to->reg.value == ZYDIS_REGISTER_RSP;

	if (!is_sp && is_zero(&instruction->operands[1])) {
		write(state, to, zero);
		return;
	}
	if (is_sp)
		drop_below(state);
	if (is_sp && state->registers[SP].origin == ADDRESS)
		state->registers[SP] = (struct value){ ALIGNED, 8, 0, 0 };
	else
		write(state, to, unknown);
}

/* The bytes that a move copies, which may be less than its registers. */
static uint32_t moved_bytes(const struct instruction *instruction)
{
	switch (instruction->head.mnemonic) {
	case ZYDIS_MNEMONIC_MOVD:
	case ZYDIS_MNEMONIC_VMOVD:
	case ZYDIS_MNEMONIC_MOVSS:
	case ZYDIS_MNEMONIC_VMOVSS: return 4;
	case ZYDIS_MNEMONIC_MOVQ:
	case ZYDIS_MNEMONIC_VMOVQ:
	case ZYDIS_MNEMONIC_MOVSD:
	case ZYDIS_MNEMONIC_VMOVSD:
	case ZYDIS_MNEMONIC_MOVLPS:
	case ZYDIS_MNEMONIC_MOVLPD: return 8;
	default: return 64;
	}
}

/* The source of a move; AVX-512 has a mask between the two operands. */
static const ZydisDecodedOperand *
source_of(const struct instruction *instruction)
{
	const ZydisDecodedOperand *operands = instruction->operands;

	switch (instruction->head.operand_count_visible) {
	case 2: return &operands[1];
	case 3:
		return operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
				       ZydisRegisterGetClass(
					       operands[1].reg.value) ==
					       ZYDIS_REGCLASS_MASK ?
			       &operands[2] :
			       NULL;
	default: return NULL;
	}
}

/* A move: the lower bytes are the same, and only as many bytes of a wider vector
 * register are known. */
static void copy(struct state *state, const struct instruction *instruction)
{
	const ZydisDecodedOperand *to = &instruction->operands[0];
	struct value value = read(state, source_of(instruction));
	uint32_t size = moved_bytes(instruction);

	if (size > bytes_of(to))
		size = bytes_of(to);
	if (value.size > size)
		value.size = size;
	write(state, to, value);
}

static bool is_masked(const struct instruction *instruction)
{
	ZydisRegister mask = instruction->head.avx.mask.reg;

	return instruction->head.avx.mask.mode > ZYDIS_MASK_MODE_DISABLED &&
	       mask != ZYDIS_REGISTER_NONE && mask != ZYDIS_REGISTER_K0;
}

/* In AVX, a scalar move between registers has three operands; the lower part comes from
 * the last one. */
static bool copies_scalar(const struct instruction *instruction)
{
	return (instruction->head.mnemonic == ZYDIS_MNEMONIC_VMOVSD ||
		instruction->head.mnemonic == ZYDIS_MNEMONIC_VMOVSS) &&
	       instruction->head.operand_count_visible == 3 &&
	       !is_masked(instruction);
}

static void copy_scalar(struct state *state,
			const struct instruction *instruction)
{
	struct value value = read(state, &instruction->operands[2]);
	uint32_t size = moved_bytes(instruction);

	if (value.size > size)
		value.size = size;
	write(state, &instruction->operands[0], value);
}

static bool is_copy(const struct instruction *instruction)
{
	switch (instruction->head.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
	case ZYDIS_MNEMONIC_MOVD:
	case ZYDIS_MNEMONIC_MOVQ:
	case ZYDIS_MNEMONIC_MOVSS:
	case ZYDIS_MNEMONIC_MOVSD:
	case ZYDIS_MNEMONIC_MOVAPS:
	case ZYDIS_MNEMONIC_MOVAPD:
	case ZYDIS_MNEMONIC_MOVUPS:
	case ZYDIS_MNEMONIC_MOVUPD:
	case ZYDIS_MNEMONIC_MOVDQA:
	case ZYDIS_MNEMONIC_MOVDQU:
	case ZYDIS_MNEMONIC_MOVLPS:
	case ZYDIS_MNEMONIC_MOVLPD:
	case ZYDIS_MNEMONIC_VMOVD:
	case ZYDIS_MNEMONIC_VMOVQ:
	case ZYDIS_MNEMONIC_VMOVSS:
	case ZYDIS_MNEMONIC_VMOVSD:
	case ZYDIS_MNEMONIC_VMOVAPS:
	case ZYDIS_MNEMONIC_VMOVAPD:
	case ZYDIS_MNEMONIC_VMOVUPS:
	case ZYDIS_MNEMONIC_VMOVUPD:
	case ZYDIS_MNEMONIC_VMOVDQA:
	case ZYDIS_MNEMONIC_VMOVDQU:
		return source_of(instruction) && !is_masked(instruction);
	default: return false;
	}
}

static void execute(struct state *state, const struct instruction *instruction)
{
	if (is_copy(instruction)) {
		copy(state, instruction);
		return;
	}
	if (copies_scalar(instruction)) {
		copy_scalar(state, instruction);
		return;
	}
	switch (instruction->head.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH: push(state, instruction); return;
	case ZYDIS_MNEMONIC_POP: pop(state, instruction); return;
	case ZYDIS_MNEMONIC_ADD: add(state, instruction, 1); return;
	case ZYDIS_MNEMONIC_SUB: add(state, instruction, -1); return;
	case ZYDIS_MNEMONIC_LEA: lea(state, instruction); return;
	case ZYDIS_MNEMONIC_AND: align(state, instruction); return;
	case ZYDIS_MNEMONIC_OR: unite(state, instruction); return;
	case ZYDIS_MNEMONIC_SHR: shift_right(state, instruction); return;
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_ENDBR64:
	case ZYDIS_MNEMONIC_TEST:
	case ZYDIS_MNEMONIC_CMP: return;
	default: spoil(state, instruction);
	}
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

/* The path has reached the hook's call. */
static void meet(struct unwind *walk)
{
	struct state *state = &walk->way.state;
	struct state *met = &walk->met;
	uint32_t kept = 0;

	drop_below(state);
	if (!walk->has_met) {
		*met = *state;
		walk->has_met = true;
		return;
	}
	for (int i = 0; i < 2 * VECTOR; i++)
		if (!is_equal(&met->registers[i], &state->registers[i]))
			met->registers[i] = unknown;
	for (uint32_t i = 0; i < met->slot_count; i++)
		if (has_slot(state, &met->slots[i]))
			met->slots[kept++] = met->slots[i];
	met->slot_count = kept;
	met->arguments_written |= state->arguments_written;
	met->is_foreign |= state->is_foreign;
	if (met->widest < state->widest)
		met->widest = state->widest;
}

static bool choose_other(struct unwind *walk)
{
	if (walk->choice_count == 0)
		return false;
	walk->way = walk->choices[--walk->choice_count];
	return true;
}

static bool fail(struct unwind *walk)
{
	walk->has_failed = true;
	return false;
}

/* Follows forward jumps inside the function only, so a loop before the hook's call
 * fails. */
static bool branch(struct unwind *walk, const struct instruction *instruction,
		   bool is_choice)
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

/* False when no path is left to follow. */
static bool step(struct unwind *walk)
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
		meet(walk);
		return choose_other(walk);
	}
	if (instruction.head.meta.category == ZYDIS_CATEGORY_UNCOND_BR)
		return branch(walk, &instruction, false);
	if (instruction.head.meta.category == ZYDIS_CATEGORY_COND_BR) {
		spoil(&walk->way.state, &instruction); /* rcx, for `loop` */
		return branch(walk, &instruction, true);
	}
	if (is_too_much(&instruction))
		return fail(walk);
	note_width(&walk->way.state, &instruction);
	execute(&walk->way.state, &instruction);
	return true;
}

/* A compiler may turn a function that calls itself at its end into a loop around the
 * hook; later rounds then have other values than the entry. */
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

static bool walk_to_hook(const struct decode_location *location,
			 struct state *met)
{
	static struct unwind walk; /* too large for the stack */
	struct value *registers = walk.way.state.registers;

	memset(&walk, 0, sizeof(walk));
	walk.location = location;
	walk.way.at = location->function;
	for (int i = 0; i < 2 * VECTOR; i++)
		registers[i] = (struct value){ ENTRY, i < VECTOR ? 8 : 64, 0,
					       i };
	registers[SP] = (struct value){ ADDRESS, 8, 0, 0 };
	while (step(&walk))
		if (++walk.steps > STEPS_MAX)
			return false;
	if (!walk.has_met || walk.has_failed || walk.met.is_foreign ||
	    is_jumped_into(location))
		return false;
	*met = walk.met;
	return true;
}

/* --- places --- */

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

static bool holds(const struct value *value, int number, uint32_t size)
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

/* Whether the value is stored there, in one piece or several. */
static bool is_stored_at(const struct state *state, const struct slot *slot,
			 int number, uint32_t size)
{
	uint32_t have = 0, more = 1;

	if (!holds(&slot->value, number, 1))
		return false;
	for (; have < size && more > 0; have += more)
		more = bytes_behind(state, number, slot->offset + have, have);
	return have >= size;
}

/* Whether the register was copied; then the function uses it. */
static bool is_copied(const struct state *state, int number)
{
	for (int i = 0; i < 2 * VECTOR; i++)
		if (i != number && holds(&state->registers[i], number, 1))
			return true;
	for (uint32_t i = 0; i < state->slot_count; i++)
		if (holds(&state->slots[i].value, number, 1))
			return true;
	return false;
}

/* Finds the value in seen_registers[@first] to [@last - 1]. */
static bool find_register(const struct state *state, int number, uint32_t size,
			  size_t first, size_t last, struct decode_place *place)
{
	for (size_t i = first; i < last; i++) {
		unsigned seen = seen_registers[i];

		if (!holds(&state->registers[seen], number, size))
			continue;
		place->where = seen < VECTOR ? DECODE_IN_REGISTER :
					       DECODE_IN_VECTOR;
		place->number = (uint8_t)(seen % VECTOR);
		place->is_unused = !is_copied(state, number);
		return true;
	}
	return false;
}

/* Finds @size bytes of register @number at the entry.  Callee-saved registers come
 * first, because some queries are made after a call (shim_hook_defer). */
static struct decode_place find(const struct state *state, int number,
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

static void follow_sp(struct state *state, const struct state *met,
		      const struct instruction *instruction)
{
	struct value *sp = &state->registers[SP];

	switch (instruction->head.meta.category) {
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_UNCOND_BR: *sp = met->registers[SP]; return;
	default: break;
	}
	switch (instruction->head.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH: move_sp(state, -8); return;
	case ZYDIS_MNEMONIC_POP: move_sp(state, 8); return;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_LEA:
		if (instruction_register_number(
			    instruction->operands[0].reg.value) == SP)
			execute(state, instruction);
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

		if (!is_memory(operand) || !place_of(state, operand, &place) ||
		    place.origin != ADDRESS ||
		    (!is_lea &&
		     !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ)))
			continue;
		if (place.number < offset + size &&
		    place.number + (is_lea ? 1 : bytes_of(operand)) > offset)
			return true;
	}
	return false;
}

/*
 * Whether any code of the function reads these bytes of the stack or takes their
 * address, in the order of addresses, without regard to jumps.  If no code is found
 * that does, the argument is unavailable.
 */
static bool is_read(const struct decode_location *location,
		    const struct state *met, int64_t offset, uint32_t size)
{
	static struct state state;
	struct instruction instruction;

	memset(&state, 0, sizeof(state));
	state.registers[SP] = (struct value){ ADDRESS, 8, 0, 0 };
	state.registers[BP] = met->registers[BP];
	for (uintptr_t at = location->function; at < location->end;
	     at = instruction_next(&instruction)) {
		if (!instruction_decode(&instruction, at))
			return false;
		if (reads(&state, &instruction, offset, size))
			return true;
		follow_sp(&state, met, &instruction);
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
};

static const uint8_t integer_registers[] = { 7, 6, 2, 1, 8, 9 };

/* The caller may omit an argument on the stack that the function does not read. */
static bool is_unused(const struct convention *convention,
		      const struct prototype_value *value)
{
	return value->is_optional &&
	       !is_read(convention->location, convention->state,
			convention->stack, value->size);
}

static void take_stack(struct convention *convention,
		       const struct prototype_value *value, bool is_aligned,
		       struct decode_places *places)
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
	convention->stack += (int32_t)((value->size + 7) / 8 * 8);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* A value whose eightbytes are both in one vector register. */
static void find_whole(const struct state *state, int number,
		       struct decode_places *places)
{
	struct decode_place place = find(state, number, 16);

	places->eightbytes[0] = places->eightbytes[1] = place;
	places->eightbytes[1].offset += 8;
}

/* One eightbyte of a split number. */
static void take_half(struct convention *convention,
		      const struct prototype_value *value,
		      struct decode_places *places, int i)
{
	static const struct prototype_value half = { .size = 8 };
	struct decode_places stack = { .in_memory = true };
	struct prototype_value part = half;

	if (convention->integers < 6) {
		places->eightbytes[i] = find(
			convention->state,
			integer_registers[convention->integers++], 8);
		places->eightbytes[i].is_unused &= value->is_optional;
		return;
	}
	part.is_optional = value->is_optional;
	take_stack(convention, &part, false, &stack);
	places->eightbytes[i] = stack.eightbytes[0];
	if (stack.eightbytes[0].where == DECODE_NOWHERE)
		places->reason = stack.reason;
}

/* Compilers need not copy the padding of an eightbyte. */
static uint32_t bytes_used(const struct prototype_value *value, int i,
			   uint32_t left)
{
	return smaller(left, value->used[i] ? value->used[i] : 8);
}

/* A value is in registers as a whole, or not at all. */
static void take_registers(struct convention *convention,
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
		take_half(convention, value, places, 0);
		take_half(convention, value, places, 1);
		return;
	}
	if (vectors > 0 && convention->are_vectors_lost) {
		/* The value is in memory if the other half has no register. */
		convention->is_lost = integers > 0;
		places->reason = SHIM_UNAVAILABLE_NOT_UNDERSTOOD;
		return;
	}
	if (convention->integers + integers > 6 ||
	    convention->vectors + vectors > 8) {
		/* One half may be in the last register. */
		convention->is_lost = value->is_odd;
		take_stack(convention, value, value->is_aligned, places);
		return;
	}
	for (int i = 0; i < 2 && value->classes[i]; i++) {
		int number = value->classes[i] == PROTOTYPE_INTEGER ?
				     integer_registers[convention->integers++] :
				     VECTOR + (int)convention->vectors++;

		if (value->is_whole)
			find_whole(convention->state, number, places);
		else
			places->eightbytes[i] = find(
				convention->state, number,
				bytes_used(value, i, left));
		for (int k = 0; k < 2; k++)
			places->eightbytes[k].is_unused &= value->is_optional;
		left -= smaller(left, 8);
		if (value->is_whole)
			break;
	}
}

/*
 * A vector is in one register if the function is compiled for a processor with
 * registers of that width, which shows if the function uses any.  Otherwise the places
 * of later values in vector registers and in memory are unknown.
 */
static void take_vector(struct convention *convention,
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
	place = find(convention->state, VECTOR + (int)convention->vectors++,
		     value->size);
	/* The hook can read 16 bytes of a vector register. */
	if (place.where != DECODE_ABOVE_SP) {
		places->reason = SHIM_UNAVAILABLE_OPTIMIZED_OUT;
		return;
	}
	places->in_memory = true;
	places->eightbytes[0] = place;
}

static void take(struct convention *convention,
		 const struct prototype_value *value,
		 struct decode_places *places)
{
	static const struct prototype_value address = {
		.size = 8,
		.kind = PROTOTYPE_REGISTERS,
		.classes = { PROTOTYPE_INTEGER },
		/* Callers may leave an object unset that is not read. */
		.is_optional = 1,
	};

	switch (value->kind) {
	case PROTOTYPE_NOTHING: break;
	case PROTOTYPE_REGISTERS:
		take_registers(convention, value, places);
		break;
	case PROTOTYPE_MEMORY:
		take_stack(convention, value, value->is_aligned, places);
		break;
	case PROTOTYPE_X87: take_stack(convention, value, true, places); break;
	case PROTOTYPE_REFERENCE:
		take_registers(convention, &address, places);
		/* Only the address may be on the stack, not the object. */
		break;
	default:
		if (value->is_vector)
			take_vector(convention, value, places);
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
	if (!walk_to_hook(location, &state)) {
		set_reasons(location, reason_of(location), places);
		return;
	}
	set_reasons(location, SHIM_UNAVAILABLE_NOT_UNDERSTOOD, places);
	convention.has_frame = find_frame(&state, frame);
	frame->is_overwritten = state.arguments_written;
	for (size_t i = 0; i < KEPT_COUNT; i++)
		frame->kept[i] = find(&state, seen_registers[i], 8);
	/* The caller passes the address for a large result. */
	if (location->values[0].kind == PROTOTYPE_MEMORY ||
	    location->values[0].kind == PROTOTYPE_REFERENCE)
		convention.integers = 1;
	convention.is_lost = location->values[0].kind == PROTOTYPE_UNKNOWN &&
			     !(location->values[0].is_vector &&
			       state.widest >= location->values[0].size);
	for (uint32_t i = 1; i < location->count && !convention.is_lost; i++)
		take(&convention, &location->values[i], &places[i]);
}
