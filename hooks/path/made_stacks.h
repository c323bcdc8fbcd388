/*
 * The stacks of coroutines that any thread has made with makecontext(3): another one may run
 * them.
 */
#ifndef PATH_MADE_STACKS_H
#define PATH_MADE_STACKS_H

#include <stdbool.h>
#include <stdint.h>

struct tree;

struct made_stack {
	uintptr_t low, high;
	/* It grows with each coroutine that is made on it or over it, and with each thread
	 * that takes it over. */
	uint32_t changes;
	const struct tree
		*owner; /* of the last thread that ran a coroutine on it */
};

/* A coroutine was made on the stack.  NULL: there are too many. */
struct made_stack *made_stacks_note(uintptr_t low, uintptr_t high);

/* The last one that holds @sp, or NULL.  Async. */
struct made_stack *made_stacks_find(uintptr_t sp);

/* @tree's thread runs its coroutine.  Returns its changes. */
uint32_t made_stacks_take(struct made_stack *stack, const struct tree *tree);

/* Whether the coroutine that @tree's thread ran, at @changes, has ended or has moved. */
static inline bool made_stacks_has_changed(const struct made_stack *stack,
					   const struct tree *tree,
					   uint32_t changes)
{
	return __atomic_load_n(&stack->changes, __ATOMIC_ACQUIRE) != changes ||
	       __atomic_load_n(&stack->owner, __ATOMIC_ACQUIRE) != tree;
}

#endif
