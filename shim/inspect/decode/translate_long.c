/*
 * Translates instructions of the x87 on long doubles.
 */
#include "inspect/decode/operands.h"
#include "inspect/decode/translators.h"

static int depth_of(const ZydisDecodedOperand *operand)
{
	if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    ZydisRegisterGetClass(operand->reg.value) != ZYDIS_REGCLASS_X87)
		return -1;
	return ZydisRegisterGetId(operand->reg.value);
}

/* The memory operand, or the last operand on the x87 stack. */
static const ZydisDecodedOperand *
find_long(const struct instruction *instruction, bool *is_memory)
{
	const ZydisDecodedOperand *found = NULL;

	for (unsigned i = 0; i < instruction->head.operand_count; i++) {
		const ZydisDecodedOperand *operand = &instruction->operands[i];

		if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			*is_memory = true;
			return operand;
		}
		if (depth_of(operand) >= 0 && (!found || depth_of(operand) > 0))
			found = operand;
	}
	return found;
}

/* operations.S: operation_extend */
static int form_of_long(unsigned size, bool is_integer)
{
	switch (size) {
	case 2: return is_integer ? 2 : -1;
	case 4: return is_integer ? 3 : 0;
	case 8: return is_integer ? 4 : 1;
	default: return -1;
	}
}

static int long_move(const struct instruction *instruction, unsigned code,
		     bool is_integer, struct operation *operation)
{
	bool is_memory = false;
	const ZydisDecodedOperand *operand = find_long(instruction, &is_memory);
	int form;

	translate_clear(operation, code);
	if (!operand)
		return -1;
	if (!is_memory) {
		operation->immediate = depth_of(operand);
		if (code == OPERATION_LONG_PUSH)
			operation->code = OPERATION_LONG_COPY;
		return 1;
	}
	if (!operand_set_memory(instruction, operand, operation))
		return -1;
	operation->size = (uint8_t)(operand->size / 8);
	operation->from_size = operation->size;
	if (code == OPERATION_LONG_PUSH)
		operation->second = PLACE_MEMORY;
	else
		operation->to = PLACE_MEMORY;
	form = form_of_long(operation->size, is_integer);
	if (form < 0 && operation->size != 10)
		return -1;
	operation->number = (uint16_t)form;
	return 1;
}

static int long_constant(struct operation *operation, int64_t value)
{
	translate_clear(operation, OPERATION_LONG_PUSH);
	operation->second = PLACE_IMMEDIATE;
	operation->immediate = value;
	return 1;
}

static int long_compute(const struct instruction *instruction,
			ZydisMnemonic mnemonic, bool pops,
			struct operation *operation)
{
	unsigned number = 0, depths = 0;
	bool is_memory = false;
	const ZydisDecodedOperand *operand = find_long(instruction, &is_memory);
	int form;

	translate_clear(operation, OPERATION_LONG);
	if (!supported_find(mnemonic, &number) || !operand)
		return -1;
	operation->number = (uint16_t)number;
	operation->width = pops;
	operation->to = operation->first = operation->second = 0;
	if (is_memory) {
		operation->second = PLACE_MEMORY;
		operation->size = (uint8_t)(operand->size / 8);
		form = form_of_long(operation->size, false);
		operation->immediate = form;
		return form >= 0 && operand_set_memory(instruction, operand,
						       operation) ?
			       1 :
			       -1;
	}
	for (unsigned i = 0; i < instruction->head.operand_count; i++) {
		int depth = depth_of(&instruction->operands[i]);

		if (depth < 0)
			continue;
		if (depths++ == 0)
			operation->to = operation->first = (uint8_t)depth;
		else if (depths == 2)
			operation->second = (uint8_t)depth;
	}
	return 1;
}

int translate_long_double(const struct instruction *instruction,
			  struct operation *operation)
{
	int count;

	switch (instruction->head.mnemonic) {
	case ZYDIS_MNEMONIC_FLD:
		return long_move(instruction, OPERATION_LONG_PUSH, false,
				 operation);
	case ZYDIS_MNEMONIC_FILD:
		return long_move(instruction, OPERATION_LONG_PUSH, true,
				 operation);
	case ZYDIS_MNEMONIC_FLDZ: return long_constant(operation, 0);
	case ZYDIS_MNEMONIC_FLD1: return long_constant(operation, 1);
	case ZYDIS_MNEMONIC_FST:
	case ZYDIS_MNEMONIC_FSTP:
		count = long_move(instruction, OPERATION_LONG_POP, false,
				  operation);
		operation->width = instruction->head.mnemonic ==
				   ZYDIS_MNEMONIC_FSTP;
		return count;
	case ZYDIS_MNEMONIC_FXCH:
		return long_move(instruction, OPERATION_LONG_EXCHANGE, false,
				 operation);
	case ZYDIS_MNEMONIC_FADDP:
		return long_compute(instruction, ZYDIS_MNEMONIC_FADD, true,
				    operation);
	case ZYDIS_MNEMONIC_FMULP:
		return long_compute(instruction, ZYDIS_MNEMONIC_FMUL, true,
				    operation);
	case ZYDIS_MNEMONIC_FSUBP:
		return long_compute(instruction, ZYDIS_MNEMONIC_FSUB, true,
				    operation);
	case ZYDIS_MNEMONIC_FSUBRP:
		return long_compute(instruction, ZYDIS_MNEMONIC_FSUBR, true,
				    operation);
	case ZYDIS_MNEMONIC_FDIVP:
		return long_compute(instruction, ZYDIS_MNEMONIC_FDIV, true,
				    operation);
	case ZYDIS_MNEMONIC_FDIVRP:
		return long_compute(instruction, ZYDIS_MNEMONIC_FDIVR, true,
				    operation);
	default:
		return long_compute(instruction, instruction->head.mnemonic,
				    false, operation);
	}
}
