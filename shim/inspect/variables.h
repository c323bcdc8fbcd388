/*
 * The parameters and locals of a function at one address in its code.
 * libshim-debuginfo.so makes this description from debug information, and
 * shim/inspect/locals.c evaluates it when the program is at that address.
 */
#ifndef SHIM_VARIABLES_H
#define SHIM_VARIABLES_H

#include <stdint.h>

/* Steps work on a stack of numbers. */
enum variable_step_kind {
	VARIABLE_NUMBER,   /* @value */
	VARIABLE_REGISTER, /* register @number, plus @value */
	VARIABLE_ADDRESS,  /* the address in memory of @value in the file */
	VARIABLE_LOAD,	   /* replaces an address by the @number bytes at it */
	VARIABLE_PICK,	   /* copies the number at depth @number */
	VARIABLE_DROP,
	VARIABLE_SWAP,
	VARIABLE_NEGATE,
	VARIABLE_INVERT,
	/* Replace the two numbers on top by their result (lower, upper): */
	VARIABLE_ADD,
	VARIABLE_SUBTRACT,
	VARIABLE_MULTIPLY,
	VARIABLE_AND,
	VARIABLE_OR,
	VARIABLE_XOR,
	VARIABLE_SHIFT_LEFT,
	VARIABLE_SHIFT_RIGHT,
	VARIABLE_SHIFT_SIGNED,
	/* Remove the top, and append bytes to the variable: */
	VARIABLE_TAKE_MEMORY, /* @value bytes at that address */
	VARIABLE_TAKE_NUMBER, /* the @value lowest bytes of that number */
};

struct variable_step {
	uint8_t kind;
	uint8_t number;
	int64_t value;
};

struct variable {
	uint32_t name; /* offset in struct variables; NUL-terminated */
	uint32_t size;
	uint32_t step, step_count;
	uint8_t reason;	   /* enum shim_unavailable */
	uint8_t is_static; /* it has a value before the function begins */
	uint8_t is_this;
	uint8_t is_hidden; /* a parameter that the compiler added */
};

/* One piece of memory: this, the parameters and locals, the steps, the names. */
struct variables {
	uint32_t size;
	uint32_t parameter_count;
	uint32_t count;		   /* with the parameters, which are first */
	uint32_t steps;		   /* offset of the steps */
	uint32_t lacks_parameters; /* unknown parameters are missing */
	struct variable variables[];
};

static inline const struct variable_step *
variables_steps(const struct variables *of, const struct variable *variable)
{
	return (const struct variable_step *)((const char *)of + of->steps) +
	       variable->step;
}

/* The number of the stack pointer; registers have the processor's numbers. */
#define VARIABLE_SP 4

#define VARIABLES_MAX 512

#endif
