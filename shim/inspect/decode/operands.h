/*
 * The operands of instructions, for all translators.
 */
#ifndef SHIM_DECODE_OPERANDS_H
#define SHIM_DECODE_OPERANDS_H

#include "inspect/decode/translate.h"

/* Adds the address or value of operand @number to @operation, and returns its kind or
 * register; PLACE_NONE if it is not supported. */
unsigned operand_place(const struct instruction *instruction, unsigned number,
		       struct operation *operation);

/* Adds the address of a memory operand; false if it is not supported. */
bool operand_set_memory(const struct instruction *instruction,
			const ZydisDecodedOperand *operand,
			struct operation *operation);

static inline uint8_t bytes_of(const struct instruction *instruction,
			       unsigned number)
{
	return (uint8_t)(instruction->operands[number].size / 8);
}

static inline unsigned form_of(unsigned size)
{
	return size == 8 ? 3 : size == 4 ? 2 : size == 2 ? 1 : 0;
}

static inline bool is_vex(const struct instruction *instruction)
{
	return instruction->head.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX;
}

static inline bool is_vector(unsigned place)
{
	return place >= REGISTER_VECTOR && place < REGISTER_HIGH;
}

static inline bool is_general(unsigned place)
{
	return place < REGISTER_KEPT || place >= REGISTER_HIGH;
}

#endif
