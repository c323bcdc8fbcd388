/*
 * The values that a caller has put into argument registers, by its debug information or
 * its code.  libshim-debuginfo.so and libshim-code.so describe the values, and
 * shim/inspect/values.c computes them.
 */
#ifndef SHIM_CALLSITE_H
#define SHIM_CALLSITE_H

#include <stdbool.h>
#include <stdint.h>

/* The most values: argument registers and their second eightbytes, once from the code
 * and once from debug information. */
#define CALLSITE_VALUES_MAX (22 + 14)
#define CALLSITE_UPPER	    16
#define CALLSITE_STEPS_MAX  8
#define CALLSITE_DEPTH_MAX  4

/* A step of an expression that works on a stack of 8 byte numbers. */
enum callsite_operation {
	CALLSITE_CONSTANT, /* @value */
	CALLSITE_REGISTER, /* the caller's register @number, plus @value */
	CALLSITE_SP,	   /* the caller's stack pointer, plus @value */
	CALLSITE_LOAD,	   /* @number bytes of the caller's frame */
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
	/* The register plus 1; vector registers from 17, their second eightbytes from
	 * 17 + CALLSITE_UPPER. */
	uint8_t entry;
	uint8_t size; /* valid bytes, from the lowest */
	uint8_t count;
	struct callsite_step steps[CALLSITE_STEPS_MAX];
};

struct callsite {
	/* The function was not visible to the compiler of the caller, so the caller
	 * passes all arguments, used or not. */
	bool is_complete;
	/* clang has written the values.  clang names the source of a copy, which may
	 * have changed before the call. */
	bool is_loose;
	uint64_t caller; /* start of the calling function */
	uint32_t count;
	struct callsite_value values[CALLSITE_VALUES_MAX];
};

#endif
