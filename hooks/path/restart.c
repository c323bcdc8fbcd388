/*
 * Calls that were open while the hooks were off.  The engine did not see which of them
 * ended, nor which calls began instead.  The stack tells, when the thread's next event
 * shows a frame that certainly exists.
 *
 * Such a frame ends at the word that its call pushed, the return address, which hooks
 * are given.  The frames of its callers begin above that word: an open call lies above
 * it, and a call below it has ended.  This is exact; the stack pointer alone is not,
 * because a call and the next one have the same frame.  Only inlined functions have no
 * frame of their own.  The code that called the hook belongs to the function that
 * begins nearest before it, of those that share the frame.
 *
 * Limit: if a call ended unseen and another began unseen in its frame, the second is
 * not known until it is left.
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

/* Only the thread's own stack is read: other stacks may be unmapped in part. */
static bool frame_ends(const struct stack *stack, const struct shim_node *node,
		       const void *site, uintptr_t sp)
{
	uintptr_t end = stack->low + frame_at(node);

	if (stack->next) /* the thread's is the last of them */
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

	/* The function left by a jump to the hook, which an inlined function cannot
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
	       !frame_ends(stack, node, site, sp)) {
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
	    (!is_here || frame_ends(at->stack, node, site, sp)))
		return NULL;
	return node;
}

/* If a call is in doubt, so are all its callers.  (Frame 0: an enter that this signal
 * handler interrupted.) */
static void doubt(struct tree *tree, struct shim_node *node)
{
	for (; !is_root(node) && !is_in_doubt(node); node = parent_of(node)) {
		if (node->frame == 0)
			continue;
		/* A coroutine's call: its duration cannot be known. */
		if (frame_waits(node->frame)) {
			node->frame &= ~(uint64_t)FRAME_WAITS;
			path_writer->doubted(tree, node);
		}
		node_doubt(node);
	}
}

static void doubt_all(struct tree *tree, struct shim_node *current)
{
	doubt(tree, current);
	for (struct stack *stack = tree->stacks; stack; stack = stack->next) {
		if (stack != tree->stack && stack->current)
			doubt(tree, stack->current);
		stack->in_doubt = true;
	}
}

static void look_back(uint64_t function, const void *site, uintptr_t sp,
		      bool is_enter)
{
	uint32_t starts = __atomic_load_n(&tree_starts, __ATOMIC_ACQUIRE);
	uint32_t restarts = __atomic_load_n(&tree_restarts, __ATOMIC_ACQUIRE);
	struct tree *tree = tree_hot.tree;
	struct place at;

	if (tree_hot.shared)
		tree = tree_of_task(shim_thread_id());
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
		doubt_all(tree, at.current);
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

	look_back(function, site, sp, is_enter);
	shim_signals_restore(signals);
}
