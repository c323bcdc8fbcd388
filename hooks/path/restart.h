/*
 * Calls that were open while the hooks were off (restart.c).
 */
#ifndef PATH_RESTART_H
#define PATH_RESTART_H

#include "path/threads.h"

/* Called at the calling thread's first events after the hooks were enabled again.  Puts
 * all open calls in doubt, and ends the calls that have ended, as the first call on
 * each stack shows. */
COLD void tree_look_back(uint64_t function, const void *site, uintptr_t sp,
			 bool is_enter);

/* Whether the call whose leave hook is at @sp is a callee, at any depth, of the open
 * call of @node on the same stack. */
bool tree_frame_ends(const struct stack *stack, const struct shim_node *node,
		     const void *site, uintptr_t sp);

/* The call of @function that its leave ends; NULL if the engine missed its enter. */
struct shim_node *tree_find_left(const struct place *at, uint64_t function,
				 const void *site, uintptr_t sp);

/* Ends the calls in doubt that cannot be open together with this call of @function. */
struct shim_node *tree_drop_ended(const struct stack *stack,
				  struct shim_node *node, uint64_t function,
				  const void *site, uintptr_t sp);

#endif
