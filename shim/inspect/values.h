/*
 * The arguments a function was called with, and what it returns: for slow hooks.
 *
 * Where they are is worked out when a hook first asks at a call site, from debug
 * information (prototype.h) and from the code (decode/), and is kept: a recipe.
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
 * Finds the recipe for the hook that runs on @frame.  SHIM_OK;
 * SHIM_E_FUNCTION_NOT_IL without debug information for the function;
 * SHIM_E_NOT_YET_AVAILABLE while another thread takes long to read it;
 * SHIM_E_UNEXPECTED without memory.  The first time it takes what helper_ask
 * does, and then the state lock.
 */
enum shim_result values_find(struct thread *self,
			     const struct arch_frame *frame,
			     const struct recipe **recipe);

/* How many arguments were declared. */
uint32_t values_count(const struct recipe *recipe);
/* Whether the first of them is `this`. */
bool values_has_this(const struct recipe *recipe);

/* Tells where they are: in the program's stack, or in memory of @self's, until
 * it is asked again. */
void values_fill(struct thread *self, const struct arch_frame *frame,
		 const struct recipe *recipe, struct shim_argument_info *info);

/*
 * Most recipes come to this: everything is in one piece, at a fixed distance from
 * the frame, if that has these registers.  They are known by themselves, and those
 * that need but what functions keep are in front, for who asks at each call.
 */
struct values_near {
	struct code_cache_entry known;
	uint16_t has_registers;
	uint32_t size; /* of what is told, in bytes */
	struct values_head {
		uint32_t count, total_size;
	} head; /* begins what is told */
	struct {
		int32_t distance;
		uint32_t length;
	} parts[]; /* at least one */
};

/* NULL: values_find knows. */
const struct values_near *values_find_near(const struct arch_frame *frame);

/* NULL: the other one may know. */
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

/* There is always room for one range. */
static inline void values_fill_near(const struct arch_frame *frame,
				    const struct values_near *near,
				    struct shim_argument_info *info)
{
	uint32_t i = 0;

	*(struct values_head *)info = near->head;
	do {
		info->ranges[i].start =
			(uintptr_t)frame + (uintptr_t)near->parts[i].distance;
		info->ranges[i].length = near->parts[i].length;
	} while (__builtin_expect(++i < near->head.count, 0));
}

/* The same of one argument: @position counts as the ranges do.  Its length is told
 * whether it can be had or not. */
enum shim_unavailable values_get(struct thread *self,
				 const struct arch_frame *frame,
				 const struct recipe *recipe, uint32_t position,
				 struct shim_argument_range *range);

/* All of it, in memory of @self's, until it is asked again; NULL if nothing is
 * known. */
struct shim_argument_info *values_tell(struct thread *self,
				       const struct arch_frame *frame);

#endif
