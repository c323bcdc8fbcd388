/*
 * Finds paths of calls without hooks: the unwinder provides the call stack, and its
 * frames become nodes of the tree.  The list of frames is too large for the program's
 * stack, so each thread has memory for one list.
 */
#include "path/path_unwind.h"
#include "path/nodes.h"

#include <shim/stack.h>

#include <shim/banned.h>

/* Memory for a list of frames, which is too large for some stacks. */
struct room {
	uint64_t
		is_used; /* by this thread, whose signal handler comes between */
	shim_function stack[SHIM_STACK_DEPTH_MAX];
};

/* This file's slot of a tree; path_add_slot() returns others. */
#define UNWIND_SLOT 0

static struct room *get_room(struct tree *tree)
{
	struct room *room = tree->slot[UNWIND_SLOT];

	if (room)
		return room;
	room = shim_memory_map(sizeof(*room));
	if (!room)
		tree->lost_cause = SHIM_LOST_MEMORY;
	tree->slot[UNWIND_SLOT] = room;
	return room;
}

static struct shim_node *find_path(struct tree *tree, struct shim_node *node,
				   const shim_function *stack, uint32_t count)
{
	while (node && count-- > 0) {
		uint64_t function = stack[count] & SHIM_NODE_ADDRESS;
		struct shim_node *child;

		/* Unknown code gets no node. */
		if (function == 0)
			continue;
		child = find(tree->table, node, function, 0);
		node = child ? child : node_make(tree, node, function, 0);
	}
	return node;
}

struct shim_node *path_unwind(struct tree *tree, struct shim_node *root)
{
	struct room *room = get_room(tree);
	struct shim_node *node;
	uint32_t count = 0;

	if (!room)
		return NULL;
	if (shim_fetch_add(&room->is_used, 1) != 0) {
		shim_local_add(&room->is_used, (uint64_t)-1);
		return root;
	}
	shim_stack_parts(NULL, SHIM_STACK_DEPTH_MAX, &count, room->stack);
	if (count > SHIM_STACK_DEPTH_MAX)
		count = SHIM_STACK_DEPTH_MAX;
	node = find_path(tree, root, room->stack, count);
	shim_local_add(&room->is_used, (uint64_t)-1);
	return node;
}
