/*
 * Translates instructions of the program to operations of a recipe.
 */
#ifndef SHIM_DECODE_TRANSLATE_H
#define SHIM_DECODE_TRANSLATE_H

#include "inspect/decode/instruction.h"
#include "inspect/decode/recipe.h"

#define TRANSLATE_OPERATIONS_MAX 3

/* The number of an operation is four times this, plus the form. */
enum translate_index {
#define INDEX(NAME)		       INDEX_##NAME,
#define INTEGER(NAME, name)	       INDEX(NAME)
#define INTEGER_UNARY(NAME, name)      INDEX(NAME)
#define INTEGER_SHIFT(NAME, name)      INDEX(NAME)
#define INTEGER_WIDE(NAME, name)       INDEX(NAME)
#define INTEGER_SWAP(NAME, name)       INDEX(NAME)
#define INTEGER_LAST(NAME, name)       INDEX(NAME)
#define INTEGER_COUNT(NAME, name)      INDEX(NAME)
#define INTEGER_ONLY(NAME, name)       INDEX(NAME)
#define INTEGER_PAIR(NAME, name)       INDEX(NAME)
#define SCALAR(NAME, name, size)       INDEX(NAME)
#define SCALAR_UNARY(NAME, name, size) INDEX(NAME)
#define FROM_INTEGER(NAME, name, size) INDEX(NAME)
#define TO_INTEGER(NAME, name, size)   INDEX(NAME)
#define COMPARE(NAME, name, size)      INDEX(NAME)
#define PACKED(NAME, name)	       INDEX(NAME)
#define PACKED_SHIFT(NAME, name)       INDEX(NAME)
#define PACKED_UNARY(NAME, name)       INDEX(NAME)
#define NARROW(NAME, name)	       INDEX(NAME)
#define NARROW_UNARY(NAME, name)       INDEX(NAME)
#define FUSED(NAME, name, size)	       INDEX(NAME)
#define FUSED_PACKED(NAME, name)       INDEX(NAME)
#define LONG_DOUBLE(NAME, name)	       INDEX(NAME)
#define LONG_DOUBLE_UNARY(NAME, name)  INDEX(NAME)
#include "inspect/decode/operations.def"
#undef INDEX
};

/* Stores the operations and returns their number; -1 if the instruction is not
 * supported. */
int translate(const struct instruction *instruction,
	      struct operation *operations);

/* The processor's number for the condition of a jump; -1 for other kinds of jumps. */
int translate_condition(const struct instruction *branch);

/* Clears @operation and sets its code; all its registers become PLACE_NONE. */
void translate_clear(struct operation *operation, unsigned code);

#endif
