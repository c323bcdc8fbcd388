/*
 * How the parameters and the result of a function travel, as its debug
 * information and the calling convention say: what libshim-debuginfo.so tells
 * and libshim-code.so looks for in the code.
 */
#ifndef SHIM_PROTOTYPE_H
#define SHIM_PROTOTYPE_H

#include <stdint.h>

enum prototype_kind {
	/* It is not known how, nor therefore where those behind it are. */
	PROTOTYPE_UNKNOWN,
	PROTOTYPE_NOTHING,   /* an empty class, or void: takes no place */
	PROTOTYPE_REGISTERS, /* if there are enough left; or else in memory */
	PROTOTYPE_MEMORY,    /* on the stack; a result, where the caller says */
	PROTOTYPE_X87,	     /* on the stack; a result, in st0 */
	PROTOTYPE_REFERENCE, /* the address of a C++ object is passed instead */
};

enum prototype_class { PROTOTYPE_NO_CLASS, PROTOTYPE_INTEGER, PROTOTYPE_SSE };

struct prototype_value {
	uint32_t size;
	uint8_t kind;
	uint8_t classes[2];  /* of its eightbytes */
	uint8_t used[2];     /* bytes of each before what only fills it up; 0: all */
	uint8_t is_aligned;  /* to 16 bytes, on the stack */
	uint8_t is_whole;    /* both eightbytes in one register */
	uint8_t is_split;    /* each eightbyte goes where there is room */
	uint8_t is_odd;	     /* where on the stack, compilers disagree */
	/* What the function never reads, its callers may leave out. */
	uint8_t is_optional;
	uint8_t is_this;
	uint8_t is_hidden;   /* the compiler's own: nobody declared it */
	uint8_t may_tail_call; /* a result: of a function that may jump to others */
	/* It is not known how, but 32 bytes of which the code tells: a vector,
	 * or a complex number of clang's. */
	uint8_t is_wide;
	/* A vector of 32 or 64 bytes: in one register, if the processor that the
	 * function is compiled for has such. */
	uint8_t is_vector;
	/* Of the result: parameters are missing behind it. */
	uint8_t is_alone;
};

/* The result, then the parameters from left to right. */
#define PROTOTYPE_VALUES_MAX 64

#endif
