/*
 * Finds the open calls at a stack pointer, for an unwinder that could not continue.
 * This file only reads: it skips calls that a jump has left open, which the next call
 * will end.
 */
#include "path/path.h"
#include "path/threads.h"
#include "path/throttled.h"

#include <shim/stack.h>

#include <shim/banned.h>

/* The position of a signal handler's calls is above the calls that it interrupted. */
struct place_above {
	const struct stack *stack;
	const struct shim_node *node;
};

/* The stack below those of signal handlers: the code there runs. */
static const struct stack *below_handlers(const struct stack *stack)
{
	while (stack->is_signal)
		stack = stack->interrupted;
	return stack;
}

static bool find_current(struct place_above *at, uintptr_t sp)
{
	struct tree *tree = tree_hot.shared ? NULL : tree_hot.tree;
	struct shim_node *current;

	if (!tree || tree->lost_depth || tree_is_former())
		return false;
	at->stack = tree->stack;
	current = __atomic_load_n(&tree_hot.current, __ATOMIC_RELAXED);
	if (current == &tree_no_call)
		current = tree->current;
	else
		at->stack = below_handlers(at->stack);
	at->node = current;
	while (!is_on(tree, at->stack, sp) && at->stack->is_signal) {
		at->node = at->stack->base;
		at->stack = at->stack->interrupted;
	}
	if (!is_on(tree, at->stack, sp)) {
		/* A coroutine in which no call has begun yet. */
		at->stack = tree_known_stack(tree, sp);
		if (!at->stack || at->stack->is_signal)
			return false;
		at->node = at->stack->current;
	}
	return at->node != NULL;
}

static bool is_call(const struct place_above *at)
{
	return at->node != at->stack->base && !is_root(at->node);
}

static uintptr_t sp_of(const struct place_above *at)
{
	return at->stack->low + frame_at(at->node);
}

static bool matches(struct place_above at, uintptr_t sp, shim_function function)
{
	for (; is_call(&at) && sp_of(&at) == sp; at.node = parent_of(at.node))
		if (address_of(at.node) == function)
			return true;
	return false;
}

/* Skips the function that the unwinder has already found, and the functions inlined
 * into it, which share its frame. */
static void skip_walked(struct place_above *at,
			const struct shim_open_calls *calls)
{
	uintptr_t sp;

	while (is_call(at) && (at->node->frame == 0 || sp_of(at) < calls->sp))
		at->node = parent_of(at->node);
	if (!is_call(at))
		return;
	sp = sp_of(at);
	if (!matches(*at, sp, calls->function))
		return;
	while (is_call(at) && sp_of(at) == sp)
		at->node = parent_of(at->node);
}

static struct place_above last_place(const struct tree *tree)
{
	const struct shim_node *current = tree_hot.current;
	struct place_above at = { tree->stack, tree->current };

	if (tree != tree_hot.tree || tree_hot.shared ||
	    current == &tree_no_call)
		return at;
	at.node = current;
	at.stack = below_handlers(at.stack);
	return at;
}

struct shim_node *tree_innermost(struct tree *tree, uintptr_t sp,
				 uintptr_t *frame)
{
	struct place_above at;

	*frame = 0;
	/* On a stack without calls, such as a signal handler's, the latest call is the
	 * innermost one. */
	if (tree != tree_hot.tree || !find_current(&at, sp)) {
		at = last_place(tree);
		sp = 0;
	}
	for (;;) {
		while (is_call(&at) &&
		       (at.node->frame == 0 || sp_of(&at) < sp ||
			throttled_is_stale(at.node, tree->throttles)))
			at.node = parent_of(at.node);
		if (is_call(&at) || !at.stack->is_signal)
			break;
		/* The handler has made no call.  Takes the call that it interrupted. */
		at.node = at.stack->base;
		at.stack = at.stack->interrupted;
		sp = 0;
	}
	if (is_call(&at))
		*frame = sp_of(&at);
	return at.node == &tree_no_call ? (struct shim_node *)tree->root :
					  (struct shim_node *)at.node;
}

void tree_list_open(struct shim_profiler *profiler,
		    struct shim_open_calls *calls)
{
	struct place_above at;

	(void)profiler;
	if (calls->count > 0 || !find_current(&at, calls->sp))
		return;
	skip_walked(&at, calls);
	while (calls->count < calls->room) {
		while (!is_call(&at) && at.stack->is_signal) {
			at.node = at.stack->base;
			at.stack = at.stack->interrupted;
		}
		if (!is_call(&at))
			break;
		calls->functions[calls->count++] = address_of(at.node);
		at.node = parent_of(at.node);
	}
	/* A coroutine has no caller. */
	calls->is_whole = !is_call(&at) &&
			  (calls->count > 0 ||
			   at.stack != &tree_hot.tree->main_stack);
}
