/*
 * One instruction of the program's, and where it leads.
 */
#ifndef SHIM_DECODE_INSTRUCTION_H
#define SHIM_DECODE_INSTRUCTION_H

#include <stdbool.h>
#include <stdint.h>
#include <Zydis/Zydis.h>

struct instruction {
	ZydisDecodedInstruction head;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	uintptr_t at;
};

/* One call at a time. */
bool instruction_decode(struct instruction *instruction, uintptr_t at);

uintptr_t instruction_next(const struct instruction *instruction);

bool instruction_is_register(const ZydisDecodedOperand *operand,
			     ZydisRegister wanted);

/* The number of the register, whatever part of it is meant, vector registers from
 * 16; -1: of no kind that holds arguments. */
int instruction_register_number(ZydisRegister given);

/* Where a jump or a call leads, or the slot it reads that from. */
void instruction_target(const struct instruction *branch, uintptr_t *target,
			const uintptr_t **slot);

/* The slot, if all there is at @target is a jump through it. */
const uintptr_t *instruction_slot_behind(uintptr_t target);

/* Whether the slot is the one for @name, of which it may not know the address
 * yet. */
bool instruction_is_slot_of(const uintptr_t *slot, const char *name);

#endif
