/*
 * Events other than calls: each leaves the tree as if the calls it ended had
 * been left, and makes the stack it goes on with the one in use.
 */
#include "calltree.h"

#include <shim/banned.h>

/* The tree of the calling task, if it has one, with what the fast path did. */
static struct tree *my_tree(void)
{
	struct tree *tree = tree_hot.tree;

	if (tree_hot.shared)
		tree = tree_of_task(shim_thread_id());
	if (tree)
		tree_collect(tree);
	return tree;
}

static struct jump *jump_of(struct tree *tree, const void *buffer)
{
	uintptr_t at = (uintptr_t)buffer;

	return &tree->jumps[(at >> 4 ^ at >> 10) % JUMPS];
}

static void on_jump_saved(struct shim_profiler *profiler, const void *buffer,
			  uintptr_t sp)
{
	struct tree *tree = my_tree();

	(void)profiler;
	if (tree)
		*jump_of(tree, buffer) =
			(struct jump){ buffer, tree->current, sp };
}

/* Frames of the stack of @sp that lie below it are gone. */
static void cut(struct tree *tree, uintptr_t sp)
{
	if (tree->lost_depth && sp > tree->lost_sp)
		tree->lost_depth = 0;
	if (!contains(tree->stack, sp)) {
		uint64_t signals = shim_signals_block();

		tree_switch_stack(tree, sp);
		tree_publish(tree, tree->stack, tree->current);
		shim_signals_restore(signals);
	}
	tree_publish(tree, tree->stack,
		tree_drop_stale(tree->stack, tree->current, sp));
}

static void on_jump_taken(struct shim_profiler *profiler, const void *buffer,
			  uintptr_t sp)
{
	struct tree *tree = my_tree();
	struct jump *jump;

	(void)profiler;
	if (!tree)
		return;
	jump = jump_of(tree, buffer);
	if (jump->buffer == buffer && (sp == 0 || jump->sp == sp) &&
	    node_is_below(tree->current, jump->node)) {
		if (tree->lost_depth && jump->sp > tree->lost_sp)
			tree->lost_depth = 0;
		tree_publish(tree, tree->stack,
			node_unwind(tree->current, jump->node));
		sp = jump->sp;
	}
	if (sp)
		cut(tree, sp);
}

static void on_frames_unwound(struct shim_profiler *profiler, uintptr_t sp)
{
	struct tree *tree = my_tree();

	(void)profiler;
	if (!tree)
		return;
	cut(tree, sp);
	tree->landed = frame_at(tree->current);
}

static void on_stack_created(struct shim_profiler *profiler, uintptr_t low,
			     uintptr_t high)
{
	struct tree *tree = my_tree();
	struct stack *stack;
	uint64_t signals;

	(void)profiler;
	low &= ~(uintptr_t)FRAME_FLAGS;
	if (!tree)
		tree = tree_get((uintptr_t)__builtin_frame_address(0));
	if (!tree)
		return;
	signals = shim_signals_block();
	for (stack = tree->stacks; stack; stack = stack->next)
		if (stack->low == low && stack->high == high &&
		    stack != &tree->main_stack)
			break;
	if (stack) {
		/* The coroutine before it will not come back. */
		node_unwind(stack->current, stack->base);
		stack->current = stack->base;
	} else {
		stack = tree_add_stack(tree, low, high);
		if (stack)
			tree_give_root(tree, stack);
	}
	tree_publish(tree, tree->stack, tree->current);
	shim_signals_restore(signals);
}

static void on_stack_switched(struct shim_profiler *profiler, uintptr_t sp)
{
	struct tree *tree = my_tree();
	uint64_t signals;

	(void)profiler;
	/* It may lie inside the one in use: an array of some function. */
	if (!tree || !tree_known_stack(tree, sp) ||
	    tree_known_stack(tree, sp) == tree->stack)
		return;
	signals = shim_signals_block();
	tree_switch_stack(tree, sp);
	tree_publish(tree, tree->stack, tree->current);
	shim_signals_restore(signals);
}

/* The open calls of the parent go on in the child, in a tree of its own where
 * they have been called 0 times. */
static void copy_open_calls(struct tree *tree, struct shim_node *innermost)
{
	struct shim_node **path, *node;
	size_t depth = 0, size;

	for (node = innermost; !is_root(node); node = parent_of(node))
		depth++;
	size = (depth + 1) * sizeof(*path);
	path = shim_memory(size);
	if (!path)
		return;
	for (node = innermost; !is_root(node); node = parent_of(node))
		path[--depth] = node;
	for (size_t i = 0; path[i]; i++) {
		node = node_make(tree, tree->current, address_of(path[i]));
		if (!node)
			break;
		tree->current = node;
		open_call(node, frame_at(path[i]));
		node->calls = 0;
	}
	shim_memory_empty(path, size);
}

static void on_forked(struct shim_profiler *profiler)
{
	struct tree *parent = my_tree(), *tree;
	struct shim_node *innermost;
	struct stack stack;

	(void)profiler;
	/* The parent's cache stays until there is one: interrupted code may be
	 * about to look into it, and verifies what it finds. */
	tree_hot = (struct hot){ .current = &tree_nobody,
				 .cache = tree_hot.cache,
				 .cache_mask = tree_hot.cache_mask,
				 .no_clock = tree_hot.no_clock };
	trees = NULL;
	if (shim_record_meta())
		tree_describe_cost(shim_record_meta());
	if (!parent)
		return;
	innermost = parent->current;
	stack = *parent->stack;
	tree = tree_get((uintptr_t)__builtin_frame_address(0));
	if (!tree)
		return;
	tree->main_stack.low = stack.low;
	tree->main_stack.high = stack.high;
	tree->root->frame = frame_of(stack.high, stack.low);
	copy_open_calls(tree, innermost);
	tree->starts = 0; /* as much in doubt as in the parent */
	tree_publish(tree, tree->stack, tree->current);
}

/* Other threads' data are theirs: each looks at its own with its next event. */
static void on_calls_started(struct shim_profiler *profiler)
{
	(void)profiler;
	__atomic_store_n(&tree_starts, tree_starts + 1, __ATOMIC_RELEASE);
}

/* Another task runs with this thread's data: a vfork child, a clone without
 * data of its own.  It is found by its tid, and so is this thread. */
static void on_data_shared(struct shim_profiler *profiler, int begins)
{
	struct tree *tree = my_tree();

	(void)profiler;
	if (begins) {
		tree_hot.shared++;
		tree_hot.current = &tree_nobody;
	} else if (--tree_hot.shared == 0 && tree) {
		tree_publish(tree, tree->stack, tree->current);
	}
}

static void on_thread_ended(struct shim_profiler *profiler)
{
	struct tree *tree = my_tree();

	(void)profiler;
	if (tree && tree->tid == shim_thread_id())
		tree_publish(tree, tree->stack,
			     node_unwind(tree->current, NULL));
}

static void on_image_unloaded(struct shim_profiler *profiler, uintptr_t low,
			      uintptr_t high, uint32_t generation)
{
	(void)profiler;
	for (struct tree *tree = __atomic_load_n(&trees, __ATOMIC_ACQUIRE);
	     tree; tree = tree->next) {
		struct table *table = tree->table;

		for (uint64_t i = 0; i < 1ull << (64 - table->shift); i++) {
			struct shim_node *node = table->slot[i];

			if (node && address_of(node) >= low &&
			    address_of(node) < high)
				node->function |= (uint64_t)generation << 48;
		}
	}
}

static void on_system_closing(struct shim_profiler *profiler)
{
	struct tree *tree = my_tree();
	enum shim_lost cause;
	void *memory;
	size_t size;

	(void)profiler;
	if (!tree)
		tree = tree_get((uintptr_t)__builtin_frame_address(0));
	if (!tree)
		return;
	/* The last chance: some room for what comes. */
	memory = shim_record_grow(tree->record, 1u << 20, &size, &cause);
	if (memory)
		tree_add_chunk(tree, memory, size);
	tree->closed = true;
	tree_publish(tree, tree->stack, tree->current);
}

static void on_clock_closing(struct shim_profiler *profiler)
{
	struct tree *tree = my_tree();

	(void)profiler;
	tree_hot.no_clock = true;
	if (!tree)
		return;
	tree->careful = true;
	tree_publish(tree, tree->stack, tree->current);
}

void tree_listen(struct shim_handle *handle)
{
	shim_profiler_on_jump_saved(handle, on_jump_saved);
	shim_profiler_on_jump_taken(handle, on_jump_taken);
	shim_profiler_on_frames_unwound(handle, on_frames_unwound);
	shim_profiler_on_stack_created(handle, on_stack_created);
	shim_profiler_on_stack_switched(handle, on_stack_switched);
	shim_profiler_on_forked(handle, on_forked);
	shim_profiler_on_calls_started(handle, on_calls_started);
	shim_profiler_on_data_shared(handle, on_data_shared);
	shim_profiler_on_thread_ended(handle, on_thread_ended);
	shim_profiler_on_image_unloaded(handle, on_image_unloaded);
	shim_profiler_on_clock_closing(handle, on_clock_closing);
	shim_profiler_on_system_closing(handle, on_system_closing);
}
