/*
 * What libshim.so and libshim-code.so know of each other.
 */
#ifndef SHIM_DECODE_H
#define SHIM_DECODE_H

#include "inspect/callsite.h"
#include "inspect/decode/recipe.h"
#include "inspect/prototype.h"

#include <stdbool.h>
#include <stdint.h>

#define DECODE_VERSION 6
#define DECODE_SYMBOL  "shim_decode"

enum decode_end {
	DECODE_UNKNOWN,
	DECODE_RETURN,
	DECODE_TAIL_CALL,
	DECODE_UNWIND,
	DECODE_DEPENDS,		/* a return or the resumption of an exception */
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

/*
 * Where a value is when a hook is called.  Registers have the processor's
 * numbers: those a function keeps for its caller, and those that arguments come
 * in.
 */
enum decode_where {
	DECODE_NOWHERE,	    /* it cannot be had any more */
	DECODE_IN_REGISTER,
	DECODE_IN_VECTOR,   /* at that offset of a vector register */
	DECODE_ON_STACK,    /* at decode_frame + offset */
	DECODE_ABOVE_SP,    /* at the stack pointer + offset */
};

struct decode_place {
	uint8_t where, number;
	/* Only if the caller has put it there: the function does not use it, and
	 * who knows that may leave it out. */
	bool is_unused;
	uint8_t entry; /* the register it came in, + 1; vector ones from 17 */
	int32_t offset;
};

/* The eightbytes of a value; the address of one that is passed by it; the first
 * byte of one in memory. */
struct decode_places {
	bool in_memory;
	uint8_t reason; /* enum shim_unavailable, if it is nowhere */
	struct decode_place eightbytes[2];
};

/* An address in the function's frame: what a register holds, and so much more. */
struct decode_frame {
	uint8_t number; /* DECODE_SP: the stack pointer when the hook is called */
	bool is_known;
	/* The function may have written what is above it before the hook. */
	bool is_overwritten;
	int32_t offset;
	/* What the caller had in the registers that functions keep: rbx, rbp,
	 * r12 to r15. */
	struct decode_place kept[6];
};

#define DECODE_SP 4

struct decode_location {
	uintptr_t function;
	uintptr_t end;		/* of its code */
	uintptr_t hook;		/* the instruction after the hook's call */
	const struct prototype_value *values; /* the result, the parameters */
	uint32_t count;
};

/* A call whose return address is known. */
struct decode_call {
	uintptr_t function;
	uintptr_t end;	/* of its code */
	uintptr_t site; /* the instruction after the call */
	bool may_tail_call;
	uint8_t number; /* answer: it was called if it is in this register */
};

struct decode_range {
	uintptr_t start, end;
};

/* What the code before a call has put where arguments are passed. */
struct decode_passed {
	uintptr_t site;
	const struct decode_range *ranges; /* of the caller's code: all of it */
	uint32_t range_count;
	uint32_t age; /* another one: code may have come in the place of some */
	uint32_t count;
	struct callsite_value values[CALLSITE_VALUES_MAX];
};

struct decode_leaving {
	uintptr_t function;
	uintptr_t hook;		/* the instruction after the leave hook's call */
	const struct prototype_value *value; /* the result */
	const struct decode_range *ranges; /* of its code */
	uint32_t range_count;
};

/* The straight way to a call: how many instructions before it each register was
 * written last, and of which others (bits).  Vector registers are from 16. */
struct decode_way {
	uintptr_t caller; /* where the function begins */
	uintptr_t site;
	uint32_t written[32];
	uint32_t sources[32];
};

/* No system call, no lock, no allocation in the functions. */
struct decode {
	uint32_t version;
	void (*follow)(const struct decode_question *question,
		       struct decode_answer *answer);
	/* What a slot of a linkage table leads to, 0: it is not bound yet. */
	uintptr_t (*bound)(const uintptr_t *slot);
	/* Where each parameter is at the enter hook: places[0] is not used.
	 * What is not known is nowhere.  One call at a time. */
	void (*arguments)(const struct decode_location *location,
			  struct decode_frame *frame,
			  struct decode_places *places);
	/* Whether it is one of this function, and whoever finds that return
	 * address in there has come by it.  One call at a time. */
	bool (*calls)(struct decode_call *call);
	/* False if the code between was not understood. */
	bool (*way)(struct decode_way *way);
	/* False if the code was not understood.  One call at a time. */
	bool (*passed)(struct decode_passed *passed);
	/* How its result is found at a leave hook.  False: @recipe would be
	 * larger than @room.  One call at a time. */
	bool (*result)(const struct decode_leaving *leaving,
		       struct decode_recipe *recipe, uint32_t room);
	/* Finds it: where it is, in @machine or in the program's memory.
	 * @machine->registers has those the function keeps, behind REGISTER_KEPT;
	 * @site is where it was called. */
	enum shim_unavailable (*run)(const struct decode_recipe *recipe,
				     struct decode_machine *machine,
				     uintptr_t site, uintptr_t *start);
};

/* locate.c */
void decode_arguments(const struct decode_location *location,
		      struct decode_frame *frame, struct decode_places *places);

/* result.c */
bool decode_result(const struct decode_leaving *leaving,
		   struct decode_recipe *recipe, uint32_t room);

#endif
