/*
 * How a function passes its parameters and result, by its debug information and the
 * calling convention.  libshim-debuginfo.so describes the function, and libshim-code.so
 * finds the values in the code.
 */
#ifndef SHIM_PROTOTYPE_H
#define SHIM_PROTOTYPE_H

#include <stdint.h>

enum prototype_kind {
	/* Unknown, so the locations of all later parameters are unknown, too. */
	PROTOTYPE_UNKNOWN,
	PROTOTYPE_NOTHING, /* an empty class, or void: not passed */
	PROTOTYPE_REGISTERS, /* if enough registers are left; otherwise in memory */
	PROTOTYPE_MEMORY, /* on the stack; a result: at the caller's address */
	PROTOTYPE_X87,	  /* on the stack; a result: in st0 */
	PROTOTYPE_REFERENCE, /* the address of a C++ object is passed */
};

enum prototype_class { PROTOTYPE_NO_CLASS, PROTOTYPE_INTEGER, PROTOTYPE_SSE };

struct prototype_value {
	uint32_t size;
	uint8_t kind;
	uint8_t classes[2]; /* of its eightbytes */
	uint8_t used
		[2]; /* bytes of each that are not padding at its end; 0: all of them */
	uint8_t is_aligned; /* to 16 bytes, on the stack */
	uint8_t is_whole;   /* both eightbytes in one register */
	uint8_t is_split;   /* eightbytes may be in registers and memory */
	uint8_t is_odd; /* compilers disagree about its location on the stack */
	/* Callers may omit it if the function never reads it. */
	uint8_t is_optional;
	/* The compiler knows all callers: at a mark they may omit it, too.  Of the result:
	 * the function may not return it. */
	uint8_t is_local;
	uint8_t is_optimized; /* the function */
	uint8_t is_this;
	uint8_t is_hidden;     /* the compiler added it */
	uint8_t may_tail_call; /* of the result: the function may make tail calls */
	/* Passed in an unknown way, but its 32 bytes can be found in the code: a
	 * vector, or a complex number in clang. */
	uint8_t is_wide;
	/* A vector of 32 or 64 bytes, in one register if the function is compiled
	 * for a processor that has such registers. */
	uint8_t is_vector;
	/* In the value of the result: debug information lacks the parameters. */
	uint8_t is_alone;
};

/* The result, then the parameters from left to right. */
#define PROTOTYPE_VALUES_MAX 64

#endif
