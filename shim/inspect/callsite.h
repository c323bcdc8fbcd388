/*
 * What a caller has put into the registers that arguments come in, as its debug
 * information or its code says: what libshim-debuginfo.so and libshim-code.so tell
 * and shim/inspect/values.c follows.
 */
#ifndef SHIM_CALLSITE_H
#define SHIM_CALLSITE_H

#include <stdbool.h>
#include <stdint.h>

/* Registers that arguments come in, and their second eightbytes: of the code; and
 * of debug information. */
#define CALLSITE_VALUES_MAX (22 + 14)
#define CALLSITE_UPPER	    16
#define CALLSITE_STEPS_MAX  8
#define CALLSITE_DEPTH_MAX  4

/* A step of an expression that works on a stack of 8 byte numbers. */
enum callsite_operation {
	CALLSITE_CONSTANT,  /* @value */
	CALLSITE_REGISTER,  /* kept register @number of the caller's, and @value */
	CALLSITE_SP,	    /* the caller's stack pointer, and @value */
	CALLSITE_LOAD,	    /* @number bytes of the caller's frame */
	CALLSITE_PLUS,
	CALLSITE_MINUS,
	CALLSITE_MULTIPLY,
	CALLSITE_AND,
	CALLSITE_OR,
	CALLSITE_XOR,
	CALLSITE_SHIFT_LEFT,
	CALLSITE_SHIFT_RIGHT,
	CALLSITE_SHIFT_SIGNED,
	CALLSITE_NEGATE,
	CALLSITE_NOT,
};

struct callsite_step {
	uint8_t operation; /* of enum callsite_operation */
	uint8_t number;
	int64_t value;
};

struct callsite_value {
	/* The register, + 1; vector registers from 17, their second eightbytes from
	 * 17 + CALLSITE_UPPER. */
	uint8_t entry;
	uint8_t size; /* bytes that are right, from the lowest */
	uint8_t count;
	struct callsite_step steps[CALLSITE_STEPS_MAX];
};

struct callsite {
	/* Who compiled the caller did not see the function: all arguments were
	 * passed, whether it uses them or not. */
	bool is_complete;
	/* clang's: it says where a value was copied from, which may have got
	 * another one before the call. */
	bool is_loose;
	uint64_t caller; /* where the function begins */
	uint32_t count;
	struct callsite_value values[CALLSITE_VALUES_MAX];
};

#endif
