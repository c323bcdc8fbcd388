/*
 * The arguments a function was called with, and what it returns: for slow hooks.
 *
 * Where they are is worked out when a hook first asks at a call site, from debug
 * information (prototype.h) and from the code (decode/), and is kept: a recipe.
 */
#ifndef SHIM_VALUES_INTERNAL_H
#define SHIM_VALUES_INTERNAL_H

#include "arch.h"

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

/* All of that at once, if the recipe is there, everything is at a fixed distance
 * from the frame, and @size, in bytes, is enough; or else false, and nothing is
 * written. */
bool values_fill_quickly(const struct thread *self,
			 const struct arch_frame *frame, uint32_t size,
			 struct shim_argument_info *info);

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
