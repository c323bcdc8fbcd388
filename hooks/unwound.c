#include "unwound.h"

#include "words.h"

#include <shim/stack.h>

#include <shim/banned.h>

/* A thread's room for a walk, which does not fit every stack. */
struct room {
	uint64_t is_used;	/* by who a handler has interrupted */
	shim_function stack[SHIM_STACK_DEPTH_MAX];
};

static struct room *get_room(struct tree *tree)
{
	struct room *room = tree->unwinding;

	if (room)
		return room;
	room = shim_memory_map(sizeof(*room));
	if (!room)
		tree->lost_cause = SHIM_LOST_MEMORY;
	tree->unwinding = room;
	return room;
}

static struct shim_node *find_path(struct tree *tree, struct shim_node *node,
				   const shim_function *stack, uint32_t count)
{
	while (node && count-- > 0) {
		uint64_t function = stack[count] & SHIM_NODE_ADDRESS;
		struct shim_node *child;

		/* Of code that nobody knows there is nothing to show. */
		if (function == 0)
			continue;
		child = find(tree->table, node, function, 0);
		node = child ? child : node_make(tree, node, function, 0);
	}
	return node;
}

struct shim_node *unwound_find(struct tree *tree, struct shim_node *root)
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

bool unwound_read_arguments(const char *arguments, bool *unwinds)
{
	const char *rest = after(arguments, "unwind");

	if (*arguments == '\0')
		return true;
	*unwinds = rest && *rest == '\0';
	return *unwinds;
}
