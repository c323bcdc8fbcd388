/* Decodes one instruction of the program, and finds its target. */
#ifndef SHIM_DECODE_INSTRUCTION_H
#define SHIM_DECODE_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <Zydis/Zydis.h>

struct instruction {
	ZydisDecodedInstruction head;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	uintptr_t at;
};

/* See decode.h. */
void instruction_start(void (*restore)(uintptr_t address, unsigned char *copy,
				       size_t size));

/* False if the bytes are no instruction, or a trap of another tool's.  Only one call may
 * run at a time. */
bool instruction_decode(struct instruction *instruction, uintptr_t at);
/* @copy: the @size bytes from @at on. */
bool instruction_decode_copy(struct instruction *instruction, uintptr_t at,
			     const unsigned char *copy, size_t size);

uintptr_t instruction_next(const struct instruction *instruction);

bool instruction_is_register(const ZydisDecodedOperand *operand,
			     ZydisRegister wanted);

/* The number of the whole register to which @given belongs; vector registers from 16.
 * -1 for other kinds of registers. */
int instruction_register_number(ZydisRegister given);

/* The target of a jump or call, or the slot from which it reads the target. */
void instruction_target(const struct instruction *branch, uintptr_t *target,
			const uintptr_t **slot);

/* The slot, if the code at @target is only a jump through it. */
const uintptr_t *instruction_slot_behind(uintptr_t target);

/* Whether the slot belongs to @name.  The slot need not be bound. */
bool instruction_is_slot_of(const uintptr_t *slot, const char *name);

#endif
