/* The tree of a thread, its stacks and its open calls (threads.c, open_calls.c). */
#ifndef PATH_THREADS_H
#define PATH_THREADS_H

#include "path/path.h"

struct stack *tree_add_stack(struct tree *tree, uintptr_t low, uintptr_t high);

/* The known stack that holds @sp, or NULL: the signal stack, or the smallest other one. */
struct stack *tree_known_stack(struct tree *tree, uintptr_t sp);

/* Whether code with the stack pointer @sp runs on @stack.  The alternate signal stack may
 * lie in another one, in a variable of a function. */
static inline bool is_on(const struct tree *tree, const struct stack *stack,
			 uintptr_t sp)
{
	return contains(stack, sp) && (stack == &tree->signal_stack) ==
					      contains(&tree->signal_stack, sp);
}

/* Gives @stack, which belongs to a coroutine, a separate root. */
void tree_give_root(struct tree *tree, struct stack *stack);

/* The tree's thread runs, or has made, the coroutine of @stack. */
void tree_take_made(const struct tree *tree, struct stack *stack,
		    struct made_stack *made);

/* The coroutine on @stack, which is not in use, has ended: so have its calls. */
void tree_end_coroutine(struct tree *tree, struct stack *stack);

/* The known stack that holds @sp, or one that another thread has made for a coroutine, or
 * NULL.  Calls of a former coroutine end. */
struct stack *tree_announced_stack(struct tree *tree, uintptr_t sp);

/* Makes the stack that holds @sp the stack in use.  Signals must be blocked. */
void tree_switch_stack(struct tree *tree, uintptr_t sp);

/* Stores the innermost open call and its stack, in the tree and for the fast path. */
void tree_publish(struct tree *tree, struct stack *stack,
		  struct shim_node *current);

/* Copies the changes of the fast path since the last tree_publish().  Returns the
 * innermost open call.  tree->current may have changed again by then, unless signals
 * are blocked. */
struct shim_node *tree_collect(struct tree *tree);

/* The latest tree of task @tid in this recording, or NULL. */
struct tree *tree_of_task(uint32_t tid);

/* The calling task's tree in this recording, or NULL. */
struct tree *tree_own(void);

/* Takes the tree from the calling thread.  Its cache stays until it has another one:
 * interrupted code may be about to read it, and will verify the entry. */
void tree_drop_hot(void);

/* Drops all trees in a forked child: they belong to the parent; or when another recording
 * begins. */
void tree_forget_all(void);

/* Returns the calling task's tree, and makes it if necessary.  NULL if the call is
 * lost. */
COLD struct tree *tree_get(uintptr_t sp);
/* The same for an event: a call of function @entered begins, a call of function @left ends,
 * or neither (0). */
COLD struct tree *tree_get_for(uintptr_t sp, uint64_t entered, uint64_t left);

/* The tree, stack and innermost call of an event.  They are kept in this copy because a
 * signal handler may change the tree's fields at any moment. */
struct place {
	struct tree *tree;
	struct stack *stack;
	struct shim_node *current;
};

/* Fills @place for an event at @sp; false without a tree. */
bool tree_find_place(struct place *place, struct tree *tree, uintptr_t sp);

/* Returns the innermost call that is open at stack pointer @sp, and its *@place; NULL
 * without a tree. */
struct shim_node *tree_find_caller(struct place *place, uintptr_t sp);

/* The innermost call of @tree's thread, read by another thread; async.  NULL if the
 * thread's memory cannot be read any more. */
struct shim_node *tree_look_at(const struct tree *tree);

/* Ends the calls whose frames lie below @sp.  Returns the innermost remaining call. */
struct shim_node *tree_drop_stale(const struct stack *stack,
				  struct shim_node *node, uintptr_t sp);

/* --- open calls, for the unwinder --- */

struct shim_open_calls;

/*
 * Returns the innermost call of @tree's thread that is open at stack pointer @sp, or
 * its root.  @tree must belong to the calling thread.  *@frame receives the stack
 * pointer of that call, or 0.
 */
struct shim_node *tree_innermost(struct tree *tree, uintptr_t sp,
				 uintptr_t *frame);

void tree_list_open(struct shim_profiler *profiler,
		    struct shim_open_calls *calls);

#endif
