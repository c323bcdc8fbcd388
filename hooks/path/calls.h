/* The hooks of the engine: enter and leave (calls.c). */
#ifndef PATH_CALLS_H
#define PATH_CALLS_H

#include "path/path.h"

#include <shim/builtin.h>

/* The fast paths of calltree:counts and calltree:exact. */
void tree_counts_enter(shim_function function, const void *site);
void tree_exact_enter(shim_function function, const void *site);
void tree_exact_leave(shim_function function, const void *site);

/* The C part of tree_exact_leave. */
void tree_exact_leave_any(shim_function function, const void *site);

/* Those that marks of functions reach directly (marks_x86_64.S). */
void tree_counts_sled_entry0(void);
void tree_counts_sled_entry4(void);
void tree_counts_sled_leave(void);
void tree_counts_entry(void);
void tree_counts_entry_kept(void);
void tree_counts_returned(void);
void tree_coarse_sled_entry0(void);
void tree_coarse_sled_entry4(void);
void tree_coarse_sled_leave(void);
void tree_coarse_entry(void);
void tree_coarse_entry_kept(void);
void tree_coarse_returned(void);

/* The clock has ticked during such a hook: the call of a child of @parent has been opened;
 * the call of @node has been closed. */
void tree_enter_ticked(struct shim_node *parent);
void tree_leave_ticked(struct shim_node *node);

/* The hooks that marks reach directly, or NULL: of the mode without a writer. */
const struct shim_mark_hooks *tree_mark_hooks(void);

/* The slow path of a hook.  (Calls in groups never match on the fast path, because the
 * functions of their nodes have SHIM_NODE_EXACT.)  @clock is the time that the hook has
 * read, or 0. */
void tree_enter_missed(uint64_t function, const void *site, uintptr_t sp,
		       struct shim_node *current, uint64_t clock);

void tree_leave_missed(uint64_t function, const void *site, uintptr_t sp);

/* Enter and leave, by enum clock.  The second array is for the time after calls were
 * disabled once. */
extern const shim_site_hook tree_hooks[4][2];
extern const shim_site_hook tree_hooks_again[4][2];

/* The hooks that get the stack pointer, of path_writer or of the mode. */
const shim_frame_hook *tree_frame_hooks(void);

/* Enters a call that a hook has deferred; with other profilers' hooks, any call. */
void tree_enter_deferred(shim_function function, const void *site, uintptr_t sp,
			 shim_elt_info info);

/*
 * Begins the entry of a call before its arguments are read.  The caller ends it with
 * tree_end_own().
 */
void tree_begin_arguments(shim_function function, const void *site,
			  uintptr_t sp);

/* Enters a call of @function in @group, with @arguments for path_writer.  Returns its
 * node, or NULL if the call is lost. */
struct shim_node *tree_enter_group(shim_function function, uint16_t group,
				   uintptr_t sp, void *arguments);

/* Whether there is a path_writer, which writes each call. */
extern bool tree_is_traced;

#endif
