/*
 * What functions return, at their leave hooks.
 *
 * How the result comes to be is worked out once for each call of a hook, from
 * debug information (prototype.h) and from the code behind it (decode/), and is
 * kept: a recipe, which is followed then.
 */
#ifndef SHIM_RESULTS_INTERNAL_H
#define SHIM_RESULTS_INTERNAL_H

#include "arch.h"
#include "inspect/code_cache.h"

#include <shim/hooks.h>
#include <shim/values.h>

struct thread;

struct results_value {
	uintptr_t start;  /* 0: it cannot be had ... */
	uint32_t length;  /* in bytes, of its type, also then; void: 0 */
	enum shim_unavailable reason; /* ... because of this */
};

/*
 * Finds the result of the call that the leave hook which runs on @frame ends.
 * It is in the program's memory, or in memory of @self's until it is asked
 * again.  @frame has registers.
 *
 * SHIM_OK, also if there is a reason; SHIM_E_FUNCTION_NOT_IL without debug
 * information for the function; SHIM_E_NOT_YET_AVAILABLE while another thread
 * takes long to read it; SHIM_E_UNEXPECTED without memory.  *@value is written in
 * any case.
 *
 * The first time at a call of a hook it takes what helper_ask does, and then the
 * state lock; later it takes no lock and makes no system call.  A signal handler
 * may come in between and ask, too.
 */
enum shim_result results_find(struct thread *self,
			      const struct arch_frame *frame,
			      struct results_value *value);

/* So far from the frame; or, with a @base, from what lies that far from it. */
struct results_place {
	int32_t base, offset;
};

/*
 * What most recipes come to: the result is where a register was kept, or in
 * memory that one leads to.  They are known by themselves, for who asks at each
 * call.
 */
struct results_near {
	struct code_cache_entry known;
	struct results_place place, return_place;
	uint32_t length;
};

static inline uintptr_t results_look(const struct arch_frame *frame,
				     const struct results_place *place)
{
	uintptr_t from = (uintptr_t)frame;

	if (place->base)
		from = *(const uintptr_t *)(from + (uintptr_t)place->base);
	return from + (uintptr_t)place->offset;
}

/* False: results_find knows.  @frame has registers. */
static inline bool results_find_in_front(const struct arch_frame *frame,
					 struct shim_argument_range *range)
{
	const struct results_near *near = (const void *)code_cache_find_in_front(
		KNOWN_LEAVES, frame->return_address, frame->function);

	/* (Where the call was inlined, another function returns.) */
	if (!near ||
	    *(const uintptr_t *)results_look(frame, &near->return_place) !=
		    (uintptr_t)frame->site)
		return false;
	range->start = results_look(frame, &near->place);
	range->length = near->length;
	return true;
}

#endif
