/*
 * Translates instructions on vector registers, floating-point scalars included.
 */
#include "inspect/decode/operands.h"
#include "inspect/decode/translators.h"

static void vector_move(struct operation *operation, unsigned to, unsigned from,
			unsigned size, unsigned cleared)
{
	operation->code = OPERATION_VECTOR_MOVE;
	operation->to = (uint8_t)to;
	operation->second = (uint8_t)from;
	operation->size = operation->from_size = (uint8_t)size;
	operation->cleared = (uint8_t)cleared;
}

int translate_move_lowest(const struct instruction *instruction, unsigned size,
			  struct operation *operation)
{
	unsigned to, from;

	translate_clear(operation, OPERATION_VECTOR_MOVE);
	to = operand_place(instruction, 0, operation);
	from = operand_place(instruction, 1, operation);
	if (to == PLACE_NONE || from == PLACE_NONE ||
	    (!is_vector(to) && !is_vector(from)) || to >= PLACE_IMMEDIATE ||
	    (to >= REGISTER_HIGH && to < PLACE_MEMORY))
		return -1;
	vector_move(operation, to, from, size,
		    !is_vector(to)	? 0 :
		    is_vex(instruction) ? 32 :
					  16);
	return 1;
}

/* Writes a part of a register over a copy of another register. */
static int move_over(const struct instruction *instruction, unsigned from,
		     unsigned offset, unsigned size,
		     struct operation *operations)
{
	unsigned to = operand_place(instruction, 0, &operations[0]), other,
		 under;
	struct operation *last = operations;

	translate_clear(&operations[0], OPERATION_VECTOR_MOVE);
	translate_clear(&operations[1], OPERATION_VECTOR_MOVE);
	if (from == 2) {
		under = operand_place(instruction, 1, &operations[0]);
		if (!is_vector(under))
			return -1;
		vector_move(&operations[0], to, under, size == 16 ? 32 : 16,
			    32);
		last = &operations[1];
	}
	other = operand_place(instruction, from, last);
	if (!is_vector(to) || other == PLACE_NONE ||
	    (from == 2 && other == to && operations[0].second != to))
		return -1;
	vector_move(last, to, other, size, 0);
	last->to_offset = (uint8_t)offset;
	return from == 2 ? 2 : 1;
}

int translate_move_scalar(const struct instruction *instruction, unsigned size,
			  struct operation *operations)
{
	unsigned count = instruction->head.operand_count_visible;
	bool between = instruction->operands[0].type ==
			       ZYDIS_OPERAND_TYPE_REGISTER &&
		       instruction->operands[1].type ==
			       ZYDIS_OPERAND_TYPE_REGISTER;

	if (count == 3)
		return move_over(instruction, 2, 0, size, operations);
	if (count != 2)
		return -1;
	if (between)
		return move_over(instruction, 1, 0, size, operations);
	return translate_move_lowest(instruction, size, operations);
}

int translate_move_half(const struct instruction *instruction, unsigned offset,
			struct operation *operations)
{
	unsigned from, to;

	if (instruction->head.operand_count_visible == 3)
		return move_over(instruction, 2, offset, 8, operations);
	translate_clear(operations, OPERATION_VECTOR_MOVE);
	to = operand_place(instruction, 0, operations);
	if (is_vector(to))
		return move_over(instruction, 1, offset, 8, operations);
	from = operand_place(instruction, 1, operations);
	if (to != PLACE_MEMORY || !is_vector(from))
		return -1;
	vector_move(operations, to, from, 8, 0);
	operations->from_offset = (uint8_t)offset;
	return 1;
}

int translate_insert(const struct instruction *instruction, unsigned size,
		     struct operation *operations)
{
	unsigned last = instruction->head.operand_count_visible - 1u;
	unsigned lanes = size == 16 ? 2 : 16 / size;
	unsigned offset = (unsigned)(instruction->operands[last].imm.value.u %
				     lanes) *
			  size;

	if (instruction->operands[last].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return -1;
	return move_over(instruction, last - 1, offset, size, operations);
}

int translate_extract(const struct instruction *instruction, unsigned size,
		      struct operation *operation)
{
	unsigned lanes = size == 16 ? 2 : 16 / size, to, from;

	translate_clear(operation, OPERATION_VECTOR_MOVE);
	to = operand_place(instruction, 0, operation);
	from = operand_place(instruction, 1, operation);
	if (!is_vector(from) || to == PLACE_NONE ||
	    instruction->operands[2].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return -1;
	vector_move(operation, to, from, size, is_vector(to) ? 32 : 0);
	operation->from_offset =
		(uint8_t)(instruction->operands[2].imm.value.u % lanes * size);
	return 1;
}

int translate_insert_float(const struct instruction *instruction,
			   struct operation *operations)
{
	unsigned last = instruction->head.operand_count_visible - 1u;
	unsigned how = (unsigned)instruction->operands[last].imm.value.u;
	int count = move_over(instruction, last - 1, (how >> 4 & 3) * 4, 4,
			      operations);

	if (how & 15)
		return -1;
	if (count > 0 && is_vector(operations[count - 1].second))
		operations[count - 1].from_offset = (uint8_t)((how >> 6 & 3) *
							      4);
	return count;
}

int translate_shift_bytes(const struct instruction *instruction, int sign,
			  struct operation *operation)
{
	unsigned last = instruction->head.operand_count_visible - 1u;
	unsigned by = (unsigned)instruction->operands[last].imm.value.u;
	unsigned to, from;

	translate_clear(operation, OPERATION_VECTOR_MOVE);
	to = operand_place(instruction, 0, operation);
	from = operand_place(instruction, last - 1, operation);
	if (!is_vector(to) || !is_vector(from) ||
	    bytes_of(instruction, 0) != 16)
		return -1;
	by = by > 16 ? 16 : by;
	vector_move(operation, to, from, 16 - by,
		    is_vex(instruction) ? 32 : 16);
	operation->from_offset = (uint8_t)(sign > 0 ? by : 0);
	operation->to_offset = (uint8_t)(sign > 0 ? 0 : by);
	return 1;
}

int translate_broadcast(const struct instruction *instruction, unsigned size,
			struct operation *operation)
{
	translate_clear(operation, OPERATION_BROADCAST);
	operation->to = (uint8_t)operand_place(instruction, 0, operation);
	operation->second = (uint8_t)operand_place(instruction, 1, operation);
	operation->size = operation->from_size = (uint8_t)size;
	operation->width = bytes_of(instruction, 0);
	operation->cleared = 32;
	return is_vector(operation->to) && operation->second <= PLACE_MEMORY ?
		       1 :
		       -1;
}

int translate_shuffle(const struct instruction *instruction, bool of_two,
		      bool of_doubles, struct operation *operation)
{
	unsigned count = instruction->head.operand_count_visible;
	unsigned first = count == 3 && of_two ? 0 : 1;
	int64_t how;

	translate_clear(operation, OPERATION_SHUFFLE);
	operation->to = (uint8_t)operand_place(instruction, 0, operation);
	operation->first = (uint8_t)operand_place(instruction, first,
						  operation);
	operation->second = (uint8_t)operand_place(
		instruction, of_two ? first + 1 : first, operation);
	if (instruction->operands[count - 1].type !=
		    ZYDIS_OPERAND_TYPE_IMMEDIATE ||
	    !is_vector(operation->to) || operation->first > PLACE_MEMORY ||
	    operation->second > PLACE_MEMORY)
		return -1;
	how = instruction->operands[count - 1].imm.value.s;
	operation->width = operation->from_size = bytes_of(instruction, 0);
	if (of_doubles && operation->width != 16)
		return -1;
	if (of_doubles)
		how = (how & 1 ? 0x0e : 0x04) | (how & 2 ? 0xe0 : 0x40);
	operation->immediate = how;
	operation->cleared = is_vex(instruction) ? 32 : 0;
	return 1;
}

int translate_vector(const struct instruction *instruction,
		     const struct supported *found, unsigned number,
		     struct operation *operation)
{
	unsigned count = instruction->head.operand_count_visible;
	unsigned last = count - 1u;
	uint8_t width = bytes_of(instruction, 0);

	translate_clear(operation, OPERATION_VECTOR);
	operation->to = (uint8_t)operand_place(instruction, 0, operation);
	operation->first = (uint8_t)operand_place(
		instruction, count == 3 ? 1 : 0, operation);
	operation->second = (uint8_t)operand_place(instruction, last,
						   operation);
	operation->width = width == 32 ? 32 : 16;
	operation->cleared = is_vex(instruction) ? 32 : 0;
	operation->number = (uint16_t)(number +
				       (operation->width == 32 ? 1 : 0));
	operation->size = operation->width;
	operation->from_size = operation->width;
	switch (found->kind) {
	case KIND_SCALAR:
	case KIND_SCALAR_UNARY:
		operation->scalar = found->size;
		operation->is_unary = found->kind == KIND_SCALAR_UNARY;
		operation->from_size =
			(uint8_t)(found->mnemonic == ZYDIS_MNEMONIC_CVTSS2SD ?
					  4 :
				  found->mnemonic == ZYDIS_MNEMONIC_CVTSD2SS ?
					  8 :
					  found->size);
		break;
	case KIND_FROM_INTEGER:
		operation->code = OPERATION_FROM_INTEGER;
		operation->scalar = found->size;
		operation->is_unary = true;
		operation->from_size = bytes_of(instruction, last);
		operation->number = (uint16_t)(number +
					       (operation->from_size == 8));
		return is_general(operation->second) &&
				       operation->second != PLACE_NONE &&
				       is_vector(operation->to) ?
			       1 :
			       -1;
	case KIND_TO_INTEGER:
		operation->code = OPERATION_TO_INTEGER;
		operation->first = PLACE_NONE;
		operation->from_size = found->size;
		/* Wide masks are not supported. */
		if (bytes_of(instruction, last) == 32)
			return -1;
		operation->size = width;
		operation->number = (uint16_t)(number + (width == 8));
		return operation->to < REGISTER_KEPT &&
				       operation->second <= PLACE_MEMORY ?
			       1 :
			       -1;
	case KIND_COMPARE:
		operation->code = OPERATION_COMPARE;
		operation->first = operation->to;
		operation->to = PLACE_NONE;
		operation->from_size = found->size;
		operation->sets_flags = true;
		return is_vector(operation->first) &&
				       operation->second <= PLACE_MEMORY ?
			       1 :
			       -1;
	case KIND_PACKED_SHIFT: operation->from_size = 16; break;
	case KIND_PACKED_UNARY: operation->first = PLACE_NONE; break;
	case KIND_NARROW_UNARY:
		operation->first = PLACE_NONE;
		operation->from_size = bytes_of(instruction, last) < 16 ?
					       bytes_of(instruction, last) :
					       16;
		if (width != 16 || bytes_of(instruction, last) > 16)
			return -1;
		break;
	case KIND_FUSED:
	case KIND_FUSED_PACKED:
		operation->first = operation->to;
		operation->third = operation->second;
		operation->second = (uint8_t)operand_place(instruction, 1,
							   operation);
		if (found->kind == KIND_FUSED)
			operation->scalar = operation->from_size = found->size;
		break;
	default: break;
	}
	if (found->kind == KIND_PACKED_UNARY &&
	    found->mnemonic == ZYDIS_MNEMONIC_MOVDDUP && operation->width == 16)
		operation->from_size = 8;
	if (!is_vector(operation->to) || operation->second >= PLACE_NONE ||
	    (operation->second >= REGISTER_HIGH &&
	     operation->second < PLACE_MEMORY) ||
	    operation->second < REGISTER_KEPT)
		return -1;
	return 1;
}
