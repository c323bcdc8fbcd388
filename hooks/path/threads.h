/*
 * The tree of a thread, its stacks, and its open calls (threads.c, open_calls.c).
 */
#ifndef PATH_THREADS_H
#define PATH_THREADS_H

#include "path/path.h"

struct stack *tree_add_stack(struct tree *tree, uintptr_t low, uintptr_t high);

/* The smallest known stack that holds @sp, or NULL. */
struct stack *tree_known_stack(struct tree *tree, uintptr_t sp);

/* Gives @stack, a coroutine's, a root of its own. */
void tree_give_root(struct tree *tree, struct stack *stack);

/* Makes the stack that holds @sp the one in use.  Signals must be blocked. */
void tree_switch_stack(struct tree *tree, uintptr_t sp);

/* Stores the innermost open call and its stack, in the tree and for the fast path. */
void tree_publish(struct tree *tree, struct stack *stack,
		  struct shim_node *current);

/* Takes over what the fast path did since the last tree_publish().  Returns the
 * innermost open call; unless signals are blocked, tree->current may be another one by
 * then. */
struct shim_node *tree_collect(struct tree *tree);

/* The latest tree of task @tid, or NULL. */
struct tree *tree_of_task(uint32_t tid);

/* Forgets all trees, in a forked child: they belong to the parent. */
void tree_forget_all(void);

/* The calling task's tree, made if it has none; NULL: the call is lost. */
COLD struct tree *tree_get(uintptr_t sp);

/* The tree, stack and innermost call of an event.  They are kept in this copy because a
 * signal handler may change the tree's fields at any moment. */
struct place {
	struct tree *tree;
	struct stack *stack;
	struct shim_node *current;
};

/* Fills @place for an event at @sp; false: there is no tree. */
bool tree_find_place(struct place *place, struct tree *tree, uintptr_t sp);

/* The innermost call that is open at stack pointer @sp, and its *@place; NULL: there is
 * no tree. */
struct shim_node *tree_find_caller(struct place *place, uintptr_t sp);

/* The innermost call of @tree's thread, read by another thread; async.  NULL if the
 * thread's memory cannot be read any more. */
struct shim_node *tree_look_at(const struct tree *tree);

/* Ends the calls whose frames lie below @sp.  Returns the innermost call that stays. */
struct shim_node *tree_drop_stale(const struct stack *stack,
				  struct shim_node *node, uintptr_t sp);

/* --- open calls, for the unwinder --- */

struct shim_open_calls;

/*
 * The innermost call of @tree's thread, which is the calling one, that is open at stack
 * pointer @sp; its root if there is none.  *@frame gets the stack pointer of that call,
 * or 0.
 */
struct shim_node *tree_innermost(struct tree *tree, uintptr_t sp,
				 uintptr_t *frame);

void tree_tell_open(struct shim_profiler *profiler,
		    struct shim_open_calls *calls);

#endif
