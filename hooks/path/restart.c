/*
 * Calls that were open while the hooks were off.  The engine missed which of them
 * ended, and which calls began instead.  The stack shows it at the thread's next event,
 * whose frame certainly exists.
 *
 * That frame ends at the word that its call pushed, the return address, which hooks
 * receive.  The frames of its callers begin above that word: calls above it are open,
 * and calls below it have ended.  This rule is exact.  The stack pointer alone is not,
 * because a call and the next one have the same frame.  Only inlined functions share a
 * frame.  Of the functions that share it, the one that begins nearest before the hook's
 * call has called the hook.
 *
 * Limit: if one call ended and another began in the same frame while the hooks were
 * off, the engine learns of the second call only at its leave.
 */
#include "path/opening.h"
#include "path/threads.h"
#include "path/throttled.h"

#include <shim/banned.h>

static bool is_below_base(const struct stack *stack,
			  const struct shim_node *node)
{
	return node != stack->base && !is_root(node);
}

/* Reads only the thread's own stack, because other stacks may be partly unmapped. */
bool tree_frame_ends(const struct stack *stack, const struct shim_node *node,
		     const void *site, uintptr_t sp)
{
	uintptr_t end = stack->low + frame_at(node);

	if (stack->next) /* the thread's own stack is the last */
		return sp < end;
	return shim_frame_ends(sp, site, end);
}

/* Whether @function has a frame of its own, and is not inlined into one of the calls
 * that share @node's frame. */
static bool has_own_frame(const struct stack *stack,
			  const struct shim_node *node, uint64_t function,
			  const void *site, uintptr_t sp)
{
	uintptr_t caller = shim_hook_caller(sp), at = function;
	uint64_t frame = frame_at(node);

	/* The function jumped to its leave hook, which an inlined function cannot
	 * do. */
	if (caller == (uintptr_t)site || caller == 0)
		return true;
	if (at > caller)
		return false;
	for (; is_below_base(stack, node) && frame_at(node) == frame;
	     node = parent_of(node)) {
		uint64_t other = address_of(node) & SHIM_NODE_ADDRESS;

		if (other > at && other <= caller)
			return false;
	}
	return true;
}

static struct shim_node *drop_beside(const struct stack *stack,
				     struct shim_node *node, const void *site,
				     uintptr_t sp)
{
	struct ended_calls unwound = { 0 };

	while (is_below_base(stack, node) && is_in_doubt(node) &&
	       !tree_frame_ends(stack, node, site, sp)) {
		node_end_unwound(node, &unwound);
		node = parent_of(node);
	}
	node_count_unwound(&unwound);
	return node;
}

struct shim_node *tree_drop_ended(const struct stack *stack,
				  struct shim_node *node, uint64_t function,
				  const void *site, uintptr_t sp)
{
	node = tree_drop_stale(stack, node, sp);
	if (has_own_frame(stack, node, function, site, sp))
		node = drop_beside(stack, node, site, sp);
	return node;
}

struct shim_node *tree_find_left(const struct place *at, uint64_t function,
				 const void *site, uintptr_t sp)
{
	struct shim_node *node = at->current;
	bool is_here = true; /* on the same stack */

	while (address_of(node) != function) {
		if (is_root(node))
			return NULL;
		is_here &= node != at->stack->base;
		node = parent_of(node);
	}
	is_here &= node != at->stack->base;
	if (is_in_doubt(node) &&
	    (!is_here || tree_frame_ends(at->stack, node, site, sp)))
		return NULL;
	return node;
}

/* If a call is in doubt, so are all its callers.  (Frame 0: an enter that this signal
 * handler interrupted.) */
static void put_in_doubt(struct tree *tree, struct shim_node *node)
{
	for (; !is_root(node) && !is_in_doubt(node); node = parent_of(node)) {
		if (node->frame == 0)
			continue;
		/* The duration of a coroutine's call stays unknown. */
		if (frame_waits(node->frame)) {
			node->frame &= ~(uint64_t)FRAME_WAITS;
			path_writer->doubted(tree, node);
		}
		node_doubt(node);
	}
}

static void put_all_in_doubt(struct tree *tree, struct shim_node *current)
{
	put_in_doubt(tree, current);
	for (struct stack *stack = tree->stacks; stack; stack = stack->next) {
		if (stack != tree->stack && stack->current)
			put_in_doubt(tree, stack->current);
		stack->in_doubt = true;
	}
}

static void look_back_quietly(uint64_t function, const void *site, uintptr_t sp,
			      bool is_enter)
{
	uint32_t starts = __atomic_load_n(&tree_starts, __ATOMIC_ACQUIRE);
	uint32_t restarts = __atomic_load_n(&tree_restarts, __ATOMIC_ACQUIRE);
	struct tree *tree = tree_own();
	struct place at;

	if (!tree) {
		tree_hot.starts = starts;
		return;
	}
	if (!tree_find_place(&at, tree, sp))
		return;
	tree = at.tree;
	if (must_strip(tree))
		at.current = tree_strip(tree, at.current);
	tree->starts = starts;
	if (tree->restarts != restarts) {
		tree->lost_depth = 0;
		if (tree->trace)
			path_writer->restarted(tree, at.current);
		put_all_in_doubt(tree, at.current);
		tree->restarts = restarts;
	}
	if (is_enter && at.stack->in_doubt) {
		at.current = tree_drop_stale(at.stack, at.current, sp);
		at.stack->in_doubt = !has_own_frame(at.stack, at.current,
						    function, site, sp);
		if (!at.stack->in_doubt)
			at.current = drop_beside(at.stack, at.current, site,
						 sp);
	}
	tree_publish(tree, at.stack, at.current);
}

COLD void tree_look_back(uint64_t function, const void *site, uintptr_t sp,
			 bool is_enter)
{
	uint64_t signals = throttled_count ? shim_signals_block() :
					     tree_be_quiet();

	look_back_quietly(function, site, sp, is_enter);
	shim_signals_restore(signals);
}
