/*
 * Removes the open calls of functions that were switched off from the open paths of a
 * tree, because the engine may miss their ends.  Their callees continue below their
 * callers, on the paths that they would have without the removed calls.
 */
#include "path/doubt.h"
#include "path/nodes.h"
#include "path/threads.h"
#include "path/throttled.h"

#include <shim/banned.h>

/* One call of a path that is made again. */
struct step {
	struct shim_node *before, *now; /* @now is NULL: removed */
};

static struct step *get_steps(struct tree *tree, size_t count)
{
	size_t room = tree->step_room ? tree->step_room : 128;

	while (room < count)
		room *= 2;
	if (room > tree->step_room) {
		tree->steps = shim_memory_map(room * sizeof(*tree->steps));
		tree->step_room = tree->steps ? room : 0;
	}
	return tree->steps;
}

/* Finds the same paths without the removed calls.  False without memory. */
static bool find_steps(struct tree *tree, struct step *steps, size_t count)
{
	struct shim_node *at = parent_of(steps[0].before);

	for (size_t i = 0; i < count; i++) {
		struct shim_node *node = steps[i].before;
		uint64_t function = address_of(node);

		steps[i].now = NULL;
		if (throttled_is_stale(node, tree->throttles))
			continue;
		steps[i].now = find(tree->table, at, function, node->group);
		if (!steps[i].now)
			steps[i].now = node_make(tree, at, function,
						 node->group);
		if (!steps[i].now)
			return false;
		at = steps[i].now;
	}
	return true;
}

/* Moves an open call from one node to the other, with its doubts. */
static void move_call(const struct step *step)
{
	struct shim_node *before = step->before, *now = step->now;
	bool was_in_doubt = is_in_doubt(before);

	if (before->frame == 0)
		return;
	if (now) {
		now->frame = frame_at(before);
		if (was_in_doubt)
			node_doubt(now);
	}
	node_trust(before);
	before->frame = 0;
}

/* The path of @node without the removed calls; NULL without memory. */
static struct shim_node *strip_path(struct tree *tree, struct shim_node *node)
{
	const struct shim_node *outermost = NULL;
	size_t depth = 0, count = 0;
	struct step *steps;

	for (struct shim_node *at = node; !is_root(at); at = parent_of(at)) {
		depth++;
		if (throttled_is_stale(at, tree->throttles)) {
			outermost = at;
			count = depth;
		}
	}
	if (!outermost)
		return node;
	steps = get_steps(tree, count);
	if (!steps)
		return NULL;
	for (size_t i = count; i-- > 0; node = parent_of(node))
		steps[i].before = node;
	node = parent_of(outermost);
	if (!find_steps(tree, steps, count))
		return NULL;
	for (size_t i = 0; i < count; i++) {
		move_call(&steps[i]);
		if (steps[i].now)
			node = steps[i].now;
	}
	return node;
}

COLD struct shim_node *tree_strip(struct tree *tree, struct shim_node *current)
{
	uint32_t epoch = __atomic_load_n(&tree_throttles, __ATOMIC_ACQUIRE);
	struct shim_node *innermost = strip_path(tree, current), *node;

	if (!innermost)
		return current; /* the next hook tries again */
	for (struct stack *stack = tree->stacks; stack; stack = stack->next) {
		struct shim_node *base = stack->base ?
						 strip_path(tree, stack->base) :
						 NULL;
		struct shim_node *inner = stack->current ?
						  strip_path(tree,
							     stack->current) :
						  NULL;

		stack->base = base ? base : stack->base;
		stack->current = inner ? inner : stack->current;
	}
	for (unsigned i = 0; i < JUMPS; i++) {
		struct jump *jump = &tree->jumps[i];

		node = jump->buffer && jump->node ?
			       strip_path(tree, jump->node) :
			       NULL;
		jump->node = node ? node : jump->node;
	}
	tree->throttles = epoch;
	return innermost;
}
