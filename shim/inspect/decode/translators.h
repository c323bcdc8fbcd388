/*
 * The translators of each kind of instruction.  Each returns the number of operations,
 * or -1 if the operands are not supported.
 */
#ifndef SHIM_DECODE_TRANSLATORS_H
#define SHIM_DECODE_TRANSLATORS_H

#include "inspect/decode/translate.h"

/* Instructions that compute, from operations.def. */
struct supported {
	uint16_t mnemonic, vex; /* 0: none */
	uint8_t kind, size;
};

/* Returns the entry of @mnemonic, and in *@number the number of its first operation;
 * NULL if the instruction is not supported. */
const struct supported *supported_find(ZydisMnemonic mnemonic,
				       unsigned *number);

/* --- translate_integer.c --- */

int translate_integer(const struct instruction *instruction,
		      const struct supported *found, unsigned number,
		      struct operation *operation);

/* Translates a rotation that keeps the flags. */
int translate_rorx(const struct instruction *instruction,
		   struct operation *operation);

int translate_pair(const struct instruction *instruction, unsigned number,
		   struct operation *operation);

int translate_move(const struct instruction *instruction,
		   struct operation *operation, unsigned code);

int translate_extend_itself(struct operation *operation, uint8_t size);

int translate_extend_to_pair(struct operation *operation, uint8_t size);

int translate_lea(const struct instruction *instruction,
		  struct operation *operation);

int translate_push(const struct instruction *instruction,
		   struct operation *operations);

int translate_pop(const struct instruction *instruction,
		  struct operation *operations);

int translate_leave(struct operation *operations);

/* The low 4 bits of all opcodes that test flags are the condition. */
int translate_conditional(const struct instruction *instruction,
			  struct operation *operation, unsigned code);

/* --- translate_vector.c --- */

/* Translates moves of the lowest @size bytes. */
int translate_move_lowest(const struct instruction *instruction, unsigned size,
			  struct operation *operation);

int translate_move_scalar(const struct instruction *instruction, unsigned size,
			  struct operation *operations);

/* Translates moves of the lower or the upper half to or from memory. */
int translate_move_half(const struct instruction *instruction, unsigned offset,
			struct operation *operations);

int translate_insert(const struct instruction *instruction, unsigned size,
		     struct operation *operations);

int translate_extract(const struct instruction *instruction, unsigned size,
		      struct operation *operation);

/* Copies a dword of the second into the first; a mask that clears dwords is not
 * supported. */
int translate_insert_float(const struct instruction *instruction,
			   struct operation *operations);

/* Translates a shift by bytes, to the right if @sign is 1. */
int translate_shift_bytes(const struct instruction *instruction, int sign,
			  struct operation *operation);

int translate_broadcast(const struct instruction *instruction, unsigned size,
			struct operation *operation);

int translate_shuffle(const struct instruction *instruction, bool of_two,
		      bool of_doubles, struct operation *operation);

/* Translates `op first, second` or `op to, first, second`. */
int translate_vector(const struct instruction *instruction,
		     const struct supported *found, unsigned number,
		     struct operation *operation);

/* --- translate_long.c --- */

int translate_long_double(const struct instruction *instruction,
			  struct operation *operation);

#endif
