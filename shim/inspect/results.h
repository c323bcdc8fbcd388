/*
 * The results of functions, at their leave hooks.
 *
 * shim finds out once for each call of a hook how the code computes the result, from
 * debug information (prototype.h) and the code after the call (decode/).  shim stores
 * the answer as a recipe, and runs the recipe at each query.
 */
#ifndef SHIM_RESULTS_INTERNAL_H
#define SHIM_RESULTS_INTERNAL_H

#include "arch.h"
#include "inspect/code_cache.h"

#include <shim/hooks.h>
#include <shim/values.h>

struct thread;

struct results_value {
	uintptr_t start; /* 0: unavailable, because of @reason */
	uint32_t length; /* bytes of its type, even if unavailable; void: 0 */
	enum shim_unavailable reason;
};

/*
 * Finds the result of the call whose leave hook runs on @frame.  The result is in the
 * program's memory, or in memory of @self until its next query.  @frame has registers.
 *
 * Returns SHIM_OK, also with a reason; SHIM_E_FUNCTION_NOT_IL without debug information
 * for the function; SHIM_E_NOT_YET_AVAILABLE while another thread takes long to read
 * it; SHIM_E_UNEXPECTED without memory.  Always writes *@value.
 *
 * The first query at a call of a hook takes the locks of helper_ask, and then the state
 * lock.  Later queries take no lock and make no system call.  A signal handler may
 * interrupt a query and make one, too.
 */
enum shim_result results_find(struct thread *self,
			      const struct arch_frame *frame,
			      struct results_value *value);

/* A location: the address at @offset from the frame; with a @base, at @offset from the
 * address that is stored at @base from the frame. */
struct results_place {
	int32_t base, offset;
};

/*
 * The simple form of most recipes: the result is in a saved register, or in memory to
 * which a saved register points.  The simple form has a separate entry, for profilers
 * that query at each call.
 */
struct results_near {
	struct code_cache_entry cached;
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

/* False without an entry; then results_find has the answer.  @frame has registers. */
static inline bool results_find_in_front(const struct arch_frame *frame,
					 struct shim_argument_range *range)
{
	const struct results_near *near = (const void *)
		code_cache_find_in_front(KNOWN_LEAVES, frame->return_address,
					 frame->function);

	/* After an inlined call, another function returns. */
	if (!near ||
	    *(const uintptr_t *)results_look(frame, &near->return_place) !=
		    (uintptr_t)frame->site)
		return false;
	range->start = results_look(frame, &near->place);
	range->length = near->length;
	return true;
}

#endif
