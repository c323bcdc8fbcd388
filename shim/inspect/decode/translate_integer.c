/*
 * Translates instructions on integers, moves, the stack and conditions.
 */
#include "inspect/decode/operands.h"
#include "inspect/decode/translators.h"

#define SP 4
#define BP 5

#define COMPUTED \
	(ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_ZF | \
	 ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF)

static void set_flags(const struct instruction *instruction,
		      struct operation *operation)
{
	const ZydisAccessedFlags *flags = instruction->head.cpu_flags;
	uint32_t written = flags->modified | flags->set_0 | flags->set_1;

	operation->sets_flags = (written & COMPUTED) != 0;
	written |= flags->undefined;
	operation->tests_flags = (flags->tested & COMPUTED) != 0;
	operation->keeps_flags = operation->sets_flags &&
				 (written & COMPUTED) != COMPUTED;
}

int translate_integer(const struct instruction *instruction,
		      const struct supported *found, unsigned number,
		      struct operation *operation)
{
	unsigned operands[3] = { PLACE_NONE, PLACE_NONE, PLACE_NONE };
	unsigned count = instruction->head.operand_count_visible;
	uint8_t size = bytes_of(instruction, 0);

	translate_clear(operation, OPERATION_INTEGER);
	set_flags(instruction, operation);
	/* `shl %eax`: the 1 is implicit. */
	if (found->kind == KIND_INTEGER_SHIFT && count < 2)
		count = 2;
	for (unsigned i = 0; i < 3 && i < count; i++) {
		operands[i] = operand_place(instruction, i, operation);
		if (operands[i] == PLACE_NONE || is_vector(operands[i]))
			return -1;
	}
	operation->size = operation->from_size = size;
	operation->to = operation->first = (uint8_t)operands[0];
	operation->second = (uint8_t)operands[1];
	switch (found->kind) {
	case KIND_INTEGER:
		if (found->mnemonic == ZYDIS_MNEMONIC_CMP ||
		    found->mnemonic == ZYDIS_MNEMONIC_TEST)
			operation->to = PLACE_NONE;
		break;
	case KIND_INTEGER_UNARY:
	case KIND_INTEGER_SWAP: break;
	case KIND_INTEGER_SHIFT:
		operation->from_size = 1;
		if (operation->second != PLACE_IMMEDIATE ||
		    (operation->immediate & 31) == 0)
			operation->keeps_flags = operation->sets_flags;
		break;
	case KIND_INTEGER_WIDE:
		if (count == 3) { /* imul */
			operation->first = (uint8_t)operands[1];
			operation->second = (uint8_t)operands[2];
		}
		switch (found->mnemonic) {
		case ZYDIS_MNEMONIC_BT:
		case ZYDIS_MNEMONIC_BTS:
		case ZYDIS_MNEMONIC_BTR:
		case ZYDIS_MNEMONIC_BTC:
			if (operation->first == PLACE_MEMORY &&
			    operation->second != PLACE_IMMEDIATE)
				return -1;
			if (found->mnemonic == ZYDIS_MNEMONIC_BT)
				operation->to = PLACE_NONE;
			break;
		case ZYDIS_MNEMONIC_TZCNT:
		case ZYDIS_MNEMONIC_LZCNT:
		case ZYDIS_MNEMONIC_POPCNT:
			operation->first = PLACE_NONE;
			break;
		default: break;
		}
		break;
	case KIND_INTEGER_LAST:
	case KIND_INTEGER_COUNT:
		operation->first = (uint8_t)operands[1];
		operation->second = (uint8_t)operands[2];
		break;
	case KIND_INTEGER_ONLY: operation->first = PLACE_NONE; break;
	default: return -1;
	}
	operation->number = (uint16_t)(number + form_of(size));
	return 1;
}

int translate_rorx(const struct instruction *instruction,
		   struct operation *operation)
{
	unsigned number = INDEX_ROR * 4;

	translate_clear(operation, OPERATION_INTEGER);
	operation->size = bytes_of(instruction, 0);
	operation->from_size = 1;
	operation->to = (uint8_t)operand_place(instruction, 0, operation);
	operation->first = (uint8_t)operand_place(instruction, 1, operation);
	operation->second = (uint8_t)operand_place(instruction, 2, operation);
	operation->number = (uint16_t)(number + form_of(operation->size));
	return operation->first == PLACE_NONE ? -1 : 1;
}

int translate_pair(const struct instruction *instruction, unsigned number,
		   struct operation *operation)
{
	translate_clear(operation, OPERATION_PAIR);
	operation->size = operation->from_size = bytes_of(instruction, 0);
	operation->second = (uint8_t)operand_place(instruction, 0, operation);
	operation->number = (uint16_t)(number + form_of(operation->size));
	operation->sets_flags = true;
	operation->immediate = instruction->head.mnemonic ==
					       ZYDIS_MNEMONIC_DIV ?
				       1 :
			       instruction->head.mnemonic ==
					       ZYDIS_MNEMONIC_IDIV ?
				       2 :
				       0;
	return operation->second < REGISTER_KEPT ||
			       operation->second == PLACE_MEMORY ?
		       1 :
		       -1;
}

int translate_move(const struct instruction *instruction,
		   struct operation *operation, unsigned code)
{
	translate_clear(operation, code);
	operation->size = bytes_of(instruction, 0);
	operation->from_size = bytes_of(instruction, 1);
	operation->to = (uint8_t)operand_place(instruction, 0, operation);
	operation->second = (uint8_t)operand_place(instruction, 1, operation);
	if (operation->second == PLACE_IMMEDIATE)
		operation->from_size = operation->size;
	if (operation->to == PLACE_NONE || operation->second == PLACE_NONE ||
	    !is_general(operation->to) || !is_general(operation->second))
		return -1;
	return 1;
}

int translate_extend_itself(struct operation *operation, uint8_t size)
{
	translate_clear(operation, OPERATION_MOVE_SIGNED);
	operation->to = operation->second = 0;
	operation->size = size;
	operation->from_size = size / 2;
	return 1;
}

int translate_extend_to_pair(struct operation *operation, uint8_t size)
{
	translate_clear(operation, OPERATION_SIGN);
	operation->to = 2;
	operation->second = 0;
	operation->size = operation->from_size = size;
	return 1;
}

int translate_lea(const struct instruction *instruction,
		  struct operation *operation)
{
	translate_clear(operation, OPERATION_ADDRESS);
	operation->size = bytes_of(instruction, 0);
	operation->to = (uint8_t)operand_place(instruction, 0, operation);
	if (operand_place(instruction, 1, operation) != PLACE_MEMORY ||
	    operation->is_thread_local || operation->to >= REGISTER_KEPT)
		return -1;
	return 1;
}

static void add_to_sp(struct operation *operation, int64_t by)
{
	translate_clear(operation, OPERATION_ADDRESS);
	operation->size = 8;
	operation->to = operation->base = SP;
	operation->displacement = by;
}

static void load_top(struct operation *operation, uint8_t to)
{
	translate_clear(operation, OPERATION_MOVE);
	operation->size = operation->from_size = 8;
	operation->to = to;
	operation->second = PLACE_MEMORY;
	operation->base = SP;
}

int translate_push(const struct instruction *instruction,
		   struct operation *operations)
{
	if (instruction->head.operand_width != 64)
		return -1;
	add_to_sp(&operations[0], -8);
	translate_clear(&operations[1], OPERATION_MOVE);
	operations[1].size = operations[1].from_size = 8;
	operations[1].second = (uint8_t)operand_place(instruction, 0,
						      &operations[1]);
	operations[1].to = PLACE_MEMORY;
	operations[1].base = SP;
	if (operations[1].second == SP ||
	    (operations[1].second >= REGISTER_KEPT &&
	     operations[1].second != PLACE_IMMEDIATE))
		return -1;
	return 2;
}

int translate_pop(const struct instruction *instruction,
		  struct operation *operations)
{
	unsigned to = operand_place(instruction, 0, &operations[0]);

	if (instruction->head.operand_width != 64 || to >= REGISTER_KEPT ||
	    to == SP)
		return -1;
	load_top(&operations[0], (uint8_t)to);
	add_to_sp(&operations[1], 8);
	return 2;
}

int translate_leave(struct operation *operations)
{
	translate_clear(&operations[0], OPERATION_MOVE);
	operations[0].size = operations[0].from_size = 8;
	operations[0].to = SP;
	operations[0].second = BP;
	load_top(&operations[1], BP);
	add_to_sp(&operations[2], 8);
	return 3;
}

int translate_conditional(const struct instruction *instruction,
			  struct operation *operation, unsigned code)
{
	translate_clear(operation, code);
	operation->condition = instruction->head.opcode & 15;
	operation->size = bytes_of(instruction, 0);
	operation->from_size = operation->size;
	operation->to = (uint8_t)operand_place(instruction, 0, operation);
	if (code == OPERATION_SELECT) {
		operation->first = operation->to;
		operation->second = (uint8_t)operand_place(instruction, 1,
							   operation);
		if (operation->second == PLACE_NONE)
			return -1;
	}
	return operation->to == PLACE_NONE ? -1 : 1;
}

int translate_condition(const struct instruction *branch)
{
	uint8_t opcode = branch->head.opcode;
	bool is_short = branch->head.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
			(opcode & 0xf0) == 0x70;
	bool is_long = branch->head.opcode_map == ZYDIS_OPCODE_MAP_0F &&
		       (opcode & 0xf0) == 0x80;

	return is_short || is_long ? opcode & 15 : -1;
}
