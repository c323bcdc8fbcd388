/*
 * The arguments of a function, for slow hooks.
 *
 * At the first query at a call site, shim finds the locations of the arguments from
 * debug information (prototype.h) and from the code (decode/).  It stores them in a
 * recipe.
 */
#ifndef SHIM_VALUES_INTERNAL_H
#define SHIM_VALUES_INTERNAL_H

#include "arch.h"
#include "inspect/code_cache.h"
#include "runtime/hook.h"

#include <shim/hooks.h>
#include <shim/values.h>

struct recipe;
struct thread;

/*
 * Finds the recipe for the hook that runs on @frame.  Returns SHIM_OK;
 * SHIM_E_FUNCTION_NOT_IL without debug information for the function;
 * SHIM_E_NOT_YET_AVAILABLE while another thread takes long to read it;
 * SHIM_E_UNEXPECTED without memory.  The first call takes the locks of helper_ask, and
 * then the state lock.
 */
enum shim_result values_find(struct thread *self,
			     const struct arch_frame *frame,
			     const struct recipe **recipe);

/* The number of declared arguments. */
uint32_t values_count(const struct recipe *recipe);
/* Whether the first declared argument is `this`. */
bool values_has_this(const struct recipe *recipe);

/* Stores the addresses of the arguments in @info.  They are on the program's stack, or
 * in memory of @self until its next query. */
void values_fill(struct thread *self, const struct arch_frame *frame,
		 const struct recipe *recipe, struct shim_argument_info *info);

/*
 * The simple form of most recipes: each argument is in one piece, at a fixed distance
 * from the frame, if the frame has these registers.  The simple form has a separate
 * entry.  If the form needs only callee-saved registers, the entry is also in the front
 * table, for profilers that query at each call.
 */
struct values_near {
	struct code_cache_entry cached;
	uint16_t has_registers;
	uint32_t size; /* of the answer, in bytes */
	struct values_head {
		uint32_t count, total_size;
	} head; /* begins the answer */
	struct {
		int32_t distance;
		uint32_t length;
	} parts[]; /* at least one */
};

/* Returns NULL without an entry; then values_find has the answer. */
const struct values_near *values_find_near(const struct arch_frame *frame);

/* Returns NULL without an entry; values_find_near may have one. */
static inline const struct values_near *
values_find_in_front(const struct arch_frame *frame)
{
#ifdef ARCH_HAS_NEAR
	return arch_frame_near(frame);
#else
	return frame->has_registers && frame->event == PLAN_ENTER ?
		       (const void *)code_cache_find_in_front(
			       KNOWN_ENTERS, frame->return_address,
			       frame->function) :
		       NULL;
#endif
}

/* @info must have room for one range. */
static inline void values_fill_near(const struct arch_frame *frame,
				    const struct values_near *near,
				    struct shim_argument_info *info)
{
	uint32_t i = 0;

	*(struct values_head *)info = near->head;
	do {
		info->ranges[i].start = (uintptr_t)frame +
					(uintptr_t)near->parts[i].distance;
		info->ranges[i].length = near->parts[i].length;
	} while (__builtin_expect(++i < near->head.count, 0));
}

/* Does the same as values_fill for the argument with the range @position.  Stores the
 * length even if the argument is unavailable. */
enum shim_unavailable values_get(struct thread *self,
				 const struct arch_frame *frame,
				 const struct recipe *recipe, uint32_t position,
				 struct shim_argument_range *range);

/* The whole answer, in memory of @self until its next query; NULL if values_find
 * fails. */
struct shim_argument_info *values_answer(struct thread *self,
					 const struct arch_frame *frame);

#endif
