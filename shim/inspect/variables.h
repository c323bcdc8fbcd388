/*
 * The parameters and locals of a function at one place in its code: what
 * libshim-debuginfo.so makes of debug information there, and shim/inspect/locals.c
 * follows whenever the program is at that place.
 */
#ifndef SHIM_VARIABLES_H
#define SHIM_VARIABLES_H

#include <stdint.h>

/* What is said of numbers is said of a stack of them, the last on top. */
enum variable_step_kind {
	VARIABLE_NUMBER,   /* @value */
	VARIABLE_REGISTER, /* what register @number holds, and @value */
	VARIABLE_ADDRESS,  /* where @value, an address in the file, is */
	VARIABLE_LOAD,	   /* instead of an address the @number bytes there */
	VARIABLE_PICK,	   /* again the one that is @number below the top */
	VARIABLE_DROP,
	VARIABLE_SWAP,
	VARIABLE_NEGATE,
	VARIABLE_INVERT,
	/* Instead of the two on top: the lower one and the upper one ... */
	VARIABLE_ADD,
	VARIABLE_SUBTRACT,
	VARIABLE_MULTIPLY,
	VARIABLE_AND,
	VARIABLE_OR,
	VARIABLE_XOR,
	VARIABLE_SHIFT_LEFT,
	VARIABLE_SHIFT_RIGHT,
	VARIABLE_SHIFT_SIGNED,
	/* The top goes, and so many bytes are the next ones of the variable: */
	VARIABLE_TAKE_MEMORY, /* @value bytes at that address */
	VARIABLE_TAKE_NUMBER, /* its @value lowest bytes */
};

struct variable_step {
	uint8_t kind;
	uint8_t number;
	int64_t value;
};

struct variable {
	uint32_t name; /* from the beginning of struct variables; ends in NUL */
	uint32_t size;
	uint32_t step, step_count;
	uint8_t reason;	   /* enum shim_unavailable */
	uint8_t is_static; /* it has a value before the function begins */
	uint8_t is_this;
	uint8_t is_hidden; /* the compiler's own parameter */
};

/* In one piece: this, the parameters and locals, the steps, the names. */
struct variables {
	uint32_t size;
	uint32_t parameter_count;
	uint32_t count;		   /* with the parameters, which are first */
	uint32_t steps;		   /* where they begin */
	uint32_t lacks_parameters; /* it is not known which */
	struct variable variables[];
};

static inline const struct variable_step *
variables_steps(const struct variables *of, const struct variable *variable)
{
	return (const struct variable_step *)((const char *)of + of->steps) +
	       variable->step;
}

/* The number of the stack pointer; the others have the processor's. */
#define VARIABLE_SP 4

#define VARIABLES_MAX 512

#endif
