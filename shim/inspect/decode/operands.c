/* Finds the operands of instructions: registers, memory, immediates. */
#include "inspect/decode/operands.h"

static unsigned place_of_register(ZydisRegister given)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(
		ZYDIS_MACHINE_MODE_LONG_64, given);
	int number = ZydisRegisterGetId(whole);

	if (given >= ZYDIS_REGISTER_AH && given <= ZYDIS_REGISTER_BH)
		return REGISTER_HIGH + (unsigned)(given - ZYDIS_REGISTER_AH);
	if (number < 0 || number > 15)
		return PLACE_NONE;
	switch (ZydisRegisterGetClass(given)) {
	case ZYDIS_REGCLASS_GPR8:
	case ZYDIS_REGCLASS_GPR16:
	case ZYDIS_REGCLASS_GPR32:
	case ZYDIS_REGCLASS_GPR64: return REGISTER_GENERAL + (unsigned)number;
	case ZYDIS_REGCLASS_XMM:
	case ZYDIS_REGCLASS_YMM: return REGISTER_VECTOR + (unsigned)number;
	default: return PLACE_NONE;
	}
}

bool operand_set_memory(const struct instruction *instruction,
			const ZydisDecodedOperand *operand,
			struct operation *operation)
{
	uint64_t address;

	if (instruction->head.address_width != 64 ||
	    operand->mem.segment == ZYDIS_REGISTER_GS)
		return false;
	operation->is_thread_local = operand->mem.segment == ZYDIS_REGISTER_FS;
	operation->displacement = operand->mem.disp.has_displacement ?
					  operand->mem.disp.value :
					  0;
	if (operand->mem.base == ZYDIS_REGISTER_RIP) {
		if (!ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(
			    &instruction->head, operand, instruction->at,
			    &address)))
			return false;
		operation->displacement = (int64_t)address;
		return true;
	}
	if (operand->mem.base != ZYDIS_REGISTER_NONE) {
		operation->base = (uint8_t)place_of_register(operand->mem.base);
		if (operation->base >= REGISTER_KEPT)
			return false;
	}
	if (operand->mem.index != ZYDIS_REGISTER_NONE) {
		operation->index = (uint8_t)place_of_register(
			operand->mem.index);
		operation->scale = operand->mem.scale;
		if (operation->index >= REGISTER_KEPT)
			return false;
	}
	return true;
}

unsigned operand_place(const struct instruction *instruction, unsigned number,
		       struct operation *operation)
{
	const ZydisDecodedOperand *operand = &instruction->operands[number];

	switch (operand->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		return place_of_register(operand->reg.value);
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		if (operand->imm.is_relative)
			return PLACE_NONE;
		operation->immediate = operand->imm.value.s;
		return PLACE_IMMEDIATE;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		return operand_set_memory(instruction, operand, operation) ?
			       PLACE_MEMORY :
			       PLACE_NONE;
	default: return PLACE_NONE;
	}
}
