/*
 * Computes the effects of instructions on the values from the entry, without guesses:
 * the operands that an unsupported instruction writes become unknown.
 */
#include "inspect/decode/entry_state.h"

#include <stddef.h>
#include <string.h>

static bool is_high_byte(ZydisRegister given)
{
	return given >= ZYDIS_REGISTER_AH && given <= ZYDIS_REGISTER_BH;
}

/* --- memory --- */

bool state_find_place(const struct state *state,
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
	/* The distance between the two bases is unknown, so the slots may overlap.
	 * Both are below the caller's frame. */
	if (slot->base != place->origin)
		return true;
	return slot->offset < place->number + size &&
	       place->number < slot->offset + slot->size;
}

static void drop_slots(struct state *state)
{
	state->slot_count = 0;
	state->arguments_written = true;
}

/* Where Microsoft's convention has room for the argument registers: above the return
 * address. */
static bool is_home(const struct value *place, unsigned number)
{
	static const uint8_t registers[] = { 1, 2, 8, 9 };
	uint64_t home = (uint64_t)place->number / 8 - 1;

	return place->origin == ADDRESS && place->number > 0 &&
	       place->number % 8 == 0 && home < sizeof(registers) &&
	       registers[home] == number;
}

static void store_value(struct state *state, const struct value *place,
			uint32_t size, const struct value *value)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < state->slot_count; i++)
		if (!overlaps(&state->slots[i], place, size))
			state->slots[kept++] = state->slots[i];
	state->slot_count = kept;
	/* A function that saves one of these registers, or stores arguments there, is
	 * declared ms_abi. */
	if (value->origin == ENTRY && (value->number >= VECTOR + 8 ||
				       is_home(place, (unsigned)value->number)))
		state->is_foreign = true;
	/* The same holds for a function that overwrites the return address. */
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

static struct value load_value(const struct state *state,
			       const struct value *place, uint32_t size)
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

static struct value read_operand(const struct state *state,
				 const ZydisDecodedOperand *operand)
{
	struct value value = unknown, place;
	int number;

	if (operand_is_memory(operand)) {
		if (state_find_place(state, operand, &place))
			value = load_value(state, &place,
					   operand_bytes(operand));
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
	if (value.size > operand_bytes(operand))
		value.size = operand_bytes(operand);
	return value;
}

/* A part of an address counts as unknown. */
static void write_operand(struct state *state,
			  const ZydisDecodedOperand *operand,
			  struct value value)
{
	struct value place;
	int number;

	if ((value.origin == ADDRESS || value.origin == ALIGNED) &&
	    value.size < 8)
		value = unknown;
	if (operand_is_memory(operand)) {
		if (state_find_place(state, operand, &place) &&
		    operand->size > 0)
			store_value(state, &place, operand_bytes(operand),
				    &value);
		else
			drop_slots(state);
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

void state_move_sp(struct state *state, int64_t by)
{
	struct value *sp = &state->registers[SP];

	if (sp->origin == ADDRESS || sp->origin == ALIGNED)
		sp->number += by;
}

/* The slot at the top of the stack. */
static bool find_top(const struct state *state, struct value *place)
{
	*place = state->registers[SP];
	return place->origin == ADDRESS || place->origin == ALIGNED;
}

/* Called after the stack pointer changed by an unknown amount. */
static void lose_sp(struct state *state)
{
	state->registers[SP] = unknown;
	drop_slots(state);
}

static void execute_push(struct state *state,
			 const struct instruction *instruction)
{
	struct value value = read_operand(state, &instruction->operands[0]),
		     place;

	if (instruction->head.operand_width != 64) {
		lose_sp(state);
		return;
	}
	state_move_sp(state, -8);
	if (find_top(state, &place))
		store_value(state, &place, 8, &value);
	else
		drop_slots(state);
}

static void execute_pop(struct state *state,
			const struct instruction *instruction)
{
	struct value value = unknown, place;

	if (instruction->head.operand_width != 64) {
		write_operand(state, &instruction->operands[0], unknown);
		lose_sp(state);
		return;
	}
	if (find_top(state, &place))
		value = load_value(state, &place, 8);
	state_move_sp(state, 8);
	write_operand(state, &instruction->operands[0], value);
}

/* All operands that the instruction writes become unknown. */
void state_spoil(struct state *state, const struct instruction *instruction)
{
	for (unsigned i = 0; i < instruction->head.operand_count; i++) {
		const ZydisDecodedOperand *operand = &instruction->operands[i];

		if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			write_operand(state, operand, unknown);
	}
	/* The instruction may have written to the stack. */
	if (state->registers[SP].origin == UNKNOWN)
		drop_slots(state);
}

/* Whether the instruction has effects on registers or memory that are not tracked. */
bool state_is_lost_by(const struct instruction *instruction)
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

static void emulate_add(struct state *state,
			const struct instruction *instruction, int sign)
{
	const ZydisDecodedOperand *to = &instruction->operands[0];
	const ZydisDecodedOperand *by = &instruction->operands[1];
	struct value value = unknown;

	if (to->type == ZYDIS_OPERAND_TYPE_REGISTER && to->size == 64 &&
	    by->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		value = read_operand(state, to);
		if (value.origin == ADDRESS || value.origin == ALIGNED)
			value.number += sign * by->imm.value.s;
		else
			value = unknown;
	}
	write_operand(state, to, value);
}

static void execute_lea(struct state *state,
			const struct instruction *instruction)
{
	struct value place = unknown;

	if (!state_find_place(state, &instruction->operands[1], &place) ||
	    instruction->operands[0].size != 64)
		place = unknown;
	write_operand(state, &instruction->operands[0], place);
}

/* Drops slots below the stack pointer, which a call overwrites. */
void state_drop_below(struct state *state)
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

/* What an operand is after zero is written to it: 4 bytes clear all of a register. */
static struct value zero_in(const ZydisDecodedOperand *to)
{
	uint32_t size = operand_bytes(to);

	return (struct value){ .origin = ZERO, .size = size < 4 ? size : 8 };
}

/* A shift by whole bytes, by which gcc stores the end of a structure. */
static void shift_right(struct state *state,
			const struct instruction *instruction)
{
	const ZydisDecodedOperand *to = &instruction->operands[0];
	const ZydisDecodedOperand *by = &instruction->operands[1];
	struct value value = read_operand(state, to);
	uint32_t bytes = (uint32_t)(by->imm.value.u / 8);

	if (by->type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
	    by->imm.value.u % 8 != 0 || value.origin != ENTRY ||
	    value.number >= VECTOR || by->imm.value.u / 8 >= value.size) {
		state_spoil(state, instruction);
		return;
	}
	value.shift += bytes;
	value.size -= bytes;
	write_operand(state, to, value);
}

static void execute_or(struct state *state,
		       const struct instruction *instruction)
{
	struct value a = read_operand(state, &instruction->operands[0]);
	struct value b = read_operand(state, &instruction->operands[1]);

	if (a.origin == ZERO && a.size >= b.size)
		write_operand(state, &instruction->operands[0], b);
	else if (b.origin != ZERO || b.size < a.size)
		state_spoil(state, instruction);
}

/* Executes `and $-32, %rsp`, which is supported once. */
static void align_sp(struct state *state, const struct instruction *instruction)
{
	const ZydisDecodedOperand *to = &instruction->operands[0];
	bool is_sp = to->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		     to->reg.value == ZYDIS_REGISTER_RSP;

	if (!is_sp && is_zero(&instruction->operands[1])) {
		write_operand(state, to, zero_in(to));
		return;
	}
	if (is_sp)
		state_drop_below(state);
	if (is_sp && state->registers[SP].origin == ADDRESS)
		state->registers[SP] = (struct value){ ALIGNED, 8, 0, 0 };
	else
		write_operand(state, to, unknown);
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

/* Executes a move.  The lower bytes stay the same; the other bytes of a wider vector
 * register become unknown. */
static void execute_move(struct state *state,
			 const struct instruction *instruction)
{
	const ZydisDecodedOperand *to = &instruction->operands[0];
	struct value value = read_operand(state, source_of(instruction));
	uint32_t size = moved_bytes(instruction);

	if (size > operand_bytes(to))
		size = operand_bytes(to);
	if (value.size > size)
		value.size = size;
	write_operand(state, to, value);
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

static void execute_scalar_move(struct state *state,
				const struct instruction *instruction)
{
	struct value value = read_operand(state, &instruction->operands[2]);
	uint32_t size = moved_bytes(instruction);

	if (value.size > size)
		value.size = size;
	write_operand(state, &instruction->operands[0], value);
}

static bool is_move(const struct instruction *instruction)
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

void state_execute(struct state *state, const struct instruction *instruction)
{
	if (is_move(instruction)) {
		execute_move(state, instruction);
		return;
	}
	if (copies_scalar(instruction)) {
		execute_scalar_move(state, instruction);
		return;
	}
	switch (instruction->head.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH: execute_push(state, instruction); return;
	case ZYDIS_MNEMONIC_POP: execute_pop(state, instruction); return;
	case ZYDIS_MNEMONIC_ADD: emulate_add(state, instruction, 1); return;
	case ZYDIS_MNEMONIC_SUB: emulate_add(state, instruction, -1); return;
	case ZYDIS_MNEMONIC_LEA: execute_lea(state, instruction); return;
	case ZYDIS_MNEMONIC_AND: align_sp(state, instruction); return;
	case ZYDIS_MNEMONIC_OR: execute_or(state, instruction); return;
	case ZYDIS_MNEMONIC_SHR: shift_right(state, instruction); return;
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_ENDBR64:
	case ZYDIS_MNEMONIC_TEST:
	case ZYDIS_MNEMONIC_CMP: return;
	default: state_spoil(state, instruction);
	}
}
