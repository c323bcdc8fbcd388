/*
 * What libshim.so and libshim-code.so know of each other.
 */
#ifndef SHIM_DECODE_H
#define SHIM_DECODE_H

#include <stdint.h>

#define DECODE_VERSION 1
#define DECODE_SYMBOL  "shim_decode"

enum decode_end {
	DECODE_UNKNOWN,
	DECODE_RETURN,
	DECODE_TAIL_CALL,
	DECODE_UNWIND,
};

struct decode_question {
	uintptr_t code;		/* where to begin */
	uintptr_t sp;		/* the stack pointer there */
	uintptr_t site;		/* what lies on the stack when it returns */
	uintptr_t function;
};

struct decode_answer {
	enum decode_end end;
	uintptr_t target;	/* of a tail call; 0: not known ... */
	const uintptr_t *slot;	/* ... but in here, when it is bound */
};

/* No system call, no lock, no allocation in the functions. */
struct decode {
	uint32_t version;
	/* Once, where dlsym may be called. */
	void (*start)(void);
	void (*follow)(const struct decode_question *question,
		       struct decode_answer *answer);
	/* What a slot of a linkage table leads to, 0: it is not bound yet. */
	uintptr_t (*bound)(const uintptr_t *slot);
};

#endif
