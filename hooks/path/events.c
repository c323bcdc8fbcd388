/*
 * Events other than calls.  Each handler ends the calls that the event has ended, as if
 * their leave hooks had run.  It also makes the stack on which the thread continues the
 * stack in use.
 */
#include "path/opening.h"
#include "path/events.h"
#include "path/made_stacks.h"
#include "path/older.h"
#include "path/threads.h"
#include "path/throttled.h"

#include <shim/info.h>

#include <shim/banned.h>

/* Removes the open calls of functions that were switched off: the engine may have
 * missed their ends. */
static COLD void strip_open_calls(struct place *at)
{
	uint64_t signals = shim_signals_block();

	at->current = tree_strip(at->tree, tree_collect(at->tree));
	tree_publish(at->tree, at->tree->stack, at->current);
	shim_signals_restore(signals);
}

/* Fills @at with the calling task's tree, stack and innermost call, and begins the
 * profiler's own time.  Returns false if the task has no tree.  A signal handler may
 * change the tree meanwhile, but restores it to @at before it returns. */
static bool find_own(struct place *at)
{
	at->tree = tree_own();
	if (!at->tree)
		return false;
	at->current = tree_collect(at->tree);
	if (must_strip(at->tree))
		strip_open_calls(at);
	at->stack = at->tree->stack;
	tree_begin_own(at->current);
	return true;
}

/* Does the same, but first makes a tree for a task without one.  Returns false if that
 * fails. */
static bool find_or_make_own(struct place *at)
{
	return find_own(at) ||
	       (tree_get((uintptr_t)__builtin_frame_address(0)) &&
		find_own(at));
}

static void publish_place(const struct place *at)
{
	tree_publish(at->tree, at->stack, at->current);
	tree_end_own();
}

/* Makes the stack that holds @sp the stack in use. */
static void switch_stack(struct place *at, uintptr_t sp)
{
	uint64_t signals = shim_signals_block();
	struct tree *tree = at->tree;

	tree->stack = at->stack;
	tree->current = at->current;
	tree_switch_stack(tree, sp);
	at->stack = tree->stack;
	at->current = tree->current;
	publish_place(at);
	shim_signals_restore(signals);
}

/*
 * Jumps may be as frequent as calls.  Where a call would take the fast path, they do as
 * well: the calling task's own tree, no tick since the last hook, and the calls are those
 * of tree_hot.current.  Otherwise NULL.
 */
static inline struct tree *find_hot(void)
{
	struct tree *tree = tree_hot.tree;

	return tree && !tree_is_former() && !tree_hot.shared &&
			       tree_hot.current != &tree_no_call &&
			       *tree_hot.tick == tree_hot.last &&
			       !tree_is_traced && !must_strip(tree) ?
		       tree :
		       NULL;
}

static inline struct jump *jump_of(struct tree *tree, const void *buffer)
{
	uintptr_t at = (uintptr_t)buffer;

	return &tree->jumps[(at >> 4 ^ at >> 10) % JUMPS];
}

static COLD void save_jump(const void *buffer, uintptr_t sp)
{
	struct place at;

	if (!find_own(&at))
		return;
	*jump_of(at.tree, buffer) = (struct jump){ buffer, at.current, sp };
	tree_end_own();
}

static void on_jump_saved(struct shim_profiler *profiler, const void *buffer,
			  uintptr_t sp)
{
	struct tree *tree = find_hot();

	(void)profiler;
	if (LIKELY(tree))
		*jump_of(tree, buffer) = (struct jump){ buffer,
							tree_hot.current, sp };
	else
		save_jump(buffer, sp);
}

/* Ends the calls whose frames lie below @sp on its stack. */
static void end_calls_below(struct place *at, uintptr_t sp)
{
	struct tree *tree = at->tree;

	if (tree->lost_depth && sp > tree->lost_sp)
		tree->lost_depth = 0;
	if (!is_on(tree, at->stack, sp))
		switch_stack(at, sp);
	at->current = tree_drop_stale(at->stack, at->current, sp);
	publish_place(at);
}

static void take_jump(const void *buffer, uintptr_t sp)
{
	struct place at;
	struct jump *jump;

	if (!find_own(&at))
		return;
	jump = jump_of(at.tree, buffer);
	if (jump->buffer == buffer && (sp == 0 || jump->sp == sp) &&
	    node_is_below(at.current, jump->node)) {
		if (at.tree->lost_depth && jump->sp > at.tree->lost_sp)
			at.tree->lost_depth = 0;
		at.current = node_unwind(at.current, jump->node);
		publish_place(&at);
		sp = jump->sp;
	}
	if (sp)
		end_calls_below(&at, sp);
}

/* A jump on the stack in use, whose target is known.  False if nothing was done. */
static bool take_hot_jump(const void *buffer, uintptr_t sp)
{
	struct tree *tree = find_hot();
	struct shim_node *node;
	const struct jump *jump;

	if (!tree || tree->stack->is_signal || !is_on(tree, tree->stack, sp))
		return false;
	jump = jump_of(tree, buffer);
	node = tree_hot.current;
	if (jump->buffer != buffer || jump->sp != sp ||
	    !node_is_below(node, jump->node))
		return false;
	if (node != jump->node)
		node = node_unwind(node, jump->node);
	node = tree_drop_stale(tree->stack, node, sp);
	__atomic_store_n(&tree_hot.current, node, __ATOMIC_RELEASE);
	return true;
}

static COLD void take_jump_quietly(const void *buffer, uintptr_t sp)
{
	uint64_t signals = tree_be_quiet();

	take_jump(buffer, sp);
	shim_signals_restore(signals);
}

static void on_jump_taken(struct shim_profiler *profiler, const void *buffer,
			  uintptr_t sp)
{
	(void)profiler;
	if (UNLIKELY(!take_hot_jump(buffer, sp)))
		take_jump_quietly(buffer, sp);
}

static void on_frames_unwound(struct shim_profiler *profiler, uintptr_t sp)
{
	uint64_t signals = tree_be_quiet();
	struct place at;

	(void)profiler;
	if (find_own(&at)) {
		end_calls_below(&at, sp);
		at.tree->landed = frame_at(at.current);
	}
	shim_signals_restore(signals);
}

/* Whether a new stack @low to @high takes memory of @stack, so that its coroutine has ended.
 * A stack may lie inside another one, in a variable of a function. */
static bool is_taken(const struct stack *stack, uintptr_t low, uintptr_t high)
{
	bool is_inside = low >= stack->low && high <= stack->high &&
			 high - low < stack->high - stack->low;

	return low < stack->high && stack->low < high && !is_inside;
}

/* Ends the calls of coroutines whose memory the new stack takes.  Returns the one with the
 * same bounds, or NULL; the others are forgotten. */
static struct stack *forget_taken(struct place *at, uintptr_t low,
				  uintptr_t high)
{
	struct stack **link = &at->tree->stacks, *stack, *same = NULL;

	while ((stack = *link) != NULL) {
		if (stack == &at->tree->main_stack || stack == at->stack ||
		    !is_taken(stack, low, high)) {
			link = &stack->next;
			continue;
		}
		tree_end_coroutine(at->tree, stack);
		if (stack->low == low && stack->high == high) {
			same = stack;
			link = &stack->next;
		} else {
			*link = stack->next;
		}
	}
	return same;
}

static void on_stack_created(struct shim_profiler *profiler, uintptr_t low,
			     uintptr_t high)
{
	struct made_stack *made;
	struct place at;
	struct stack *stack;
	uint64_t signals;

	(void)profiler;
	low &= ~(uintptr_t)FRAME_FLAGS;
	made = made_stacks_note(low, high);
	if (!find_or_make_own(&at))
		return;
	signals = shim_signals_block();
	stack = forget_taken(&at, low, high);
	if (!stack) {
		stack = tree_add_stack(at.tree, low, high);
		if (stack)
			tree_give_root(at.tree, stack);
	}
	if (stack && made)
		tree_take_made(at.tree, stack, made);
	publish_place(&at);
	shim_signals_restore(signals);
}

static void on_stack_switched(struct shim_profiler *profiler, uintptr_t sp)
{
	struct stack *to;
	struct place at;

	(void)profiler;
	if (!find_own(&at))
		return;
	/* The stack may lie inside the stack in use, for example in an array of a
	 * function. */
	to = tree_announced_stack(at.tree, sp);
	if (to && to != at.stack)
		switch_stack(&at, sp);
}

/* The generation of the image that was unloaded last. */
static uint32_t last_generation;

/* The function of a node of the parent, as it was at the fork: the parent marks the
 * functions of images that it unloads later, and the child still has these images. */
static uint64_t function_at_fork(const struct shim_node *node)
{
	uint64_t function = address_of(node);

	if (SHIM_NODE_GENERATION(function) > last_generation)
		function &= SHIM_NODE_ADDRESS;
	return function;
}

/* The frame of the parent's open call @node, whose caller's is @outer.  The parent continues
 * to run: if it has left the call meanwhile, its frame is 0, and if it has called the function
 * again, another one.  A frame that is not between the caller's and @inner, which the child
 * has reached, is such a one. */
static uint64_t frame_at_fork(const struct shim_node *node, uint64_t outer,
			      uint64_t inner)
{
	uint64_t frame = __atomic_load_n(&node->frame, __ATOMIC_RELAXED) &
			 ~(uint64_t)FRAME_FLAGS;

	return frame > inner && frame <= outer ? frame : outer;
}

/* Copies the parent's open calls of one stack to the child's own tree, which counts 0 calls
 * of them. */
static void copy_calls(struct place *at, struct shim_node *innermost,
		       const struct shim_node *base)
{
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
	uintptr_t low = at->stack->low;
	uint64_t frame = frame_of(at->stack->high, low);
	uint64_t inner = contains(at->stack, sp) ? frame_of(sp, low) : 0;
	struct shim_node **path, *node;
	size_t depth = 0, size;

	for (node = innermost; node != base && !is_root(node);
	     node = parent_of(node))
		depth += !throttled_is_stale(node, at->tree->throttles);
	size = (depth + 1) * sizeof(*path);
	path = shim_memory_map(size);
	if (!path)
		return;
	for (node = innermost; node != base && !is_root(node);
	     node = parent_of(node))
		if (!throttled_is_stale(node, at->tree->throttles))
			path[--depth] = node;
	for (size_t i = 0; path[i]; i++) {
		node = node_make(at->tree, at->current,
				 function_at_fork(path[i]), path[i]->group);
		if (!node)
			break;
		at->current = node;
		frame = frame_at_fork(path[i], frame, inner);
		open_call(node, frame);
		node->calls = 0;
		if (is_in_doubt(path[i]))
			node_doubt(node);
	}
	shim_memory_unmap(path, size);
}

/* Copies the calls of @from, a stack of @parent, and of the stacks that it interrupted, if
 * it is a signal handler's. */
static void copy_open_calls(struct place *at, const struct tree *parent,
			    const struct stack *from,
			    struct shim_node *innermost)
{
	struct stack *to = at->stack;

	if (from->is_signal) {
		copy_open_calls(at, parent, from->interrupted, from->base);
		to = from == &parent->signal_stack ?
			     &at->tree->signal_stack :
			     tree_add_stack(at->tree, from->low, from->high);
		if (!to)
			return;
		to->is_signal = true;
		to->base = at->stack->current = at->current;
		to->interrupted = at->stack;
		at->stack = to;
	} else {
		at->tree->root->frame = frame_of(from->high, from->low);
	}
	to->low = from->low;
	to->high = from->high;
	to->in_doubt = from->in_doubt;
	copy_calls(at, innermost, from->base);
}

static void begin_recording(void)
{
	tree_forget_all();
	throttled_forked();
	throttled_forget_pending();
	if (shim_record_meta())
		tree_describe_cost(shim_record_meta());
}

/* The threads drop their trees at their next events; hooks that run late still use them. */
static void on_recording_began(struct shim_profiler *profiler)
{
	(void)profiler;
	__atomic_fetch_add(&tree_recording, 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&tree_starts, 1, __ATOMIC_RELEASE);
	begin_recording();
	for (const struct path_client **at = path_clients; *at; at++)
		if ((*at)->renewed)
			(*at)->renewed();
		else if ((*at)->forked)
			(*at)->forked();
}

static void on_forked(struct shim_profiler *profiler)
{
	struct place parent, at;
	bool has_parent = find_own(&parent);
	struct tree *tree;

	(void)profiler;
	tree_hot.shared = 0;
	tree_drop_hot();
	begin_recording();
	CALL_CLIENTS(forked);
	if (!has_parent || !find_or_make_own(&at))
		return;
	tree = at.tree;
	if (tree->trace)
		path_writer->copying(tree);
	copy_open_calls(&at, parent.tree, parent.stack, parent.current);
	tree->stack = at.stack;
	tree->current = at.current;
	if (tree->trace)
		path_writer->copied(tree);
	tree->starts = parent.tree->starts;
	tree->restarts = parent.tree->restarts;
	publish_place(&at);
}

/* Each thread changes only its own data, at its next event. */
static void on_calls_started(struct shim_profiler *profiler)
{
	(void)profiler;
	__atomic_fetch_add(&tree_restarts, 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&tree_starts, 1, __ATOMIC_RELEASE);
}

static void end_thread(struct place *at)
{
	at->current = node_unwind(at->current, NULL);
	publish_place(at);
	if (at->tree->trace)
		path_writer->thread_ended(at->tree);
}

/* A tree whose task has gone may get another one at any time, from any thread, but not
 * while its task is the calling thread. */
static bool claim_tree(struct tree *tree, uint32_t *tid)
{
	*tid = __atomic_load_n(&tree->tid, __ATOMIC_RELAXED);
	return tree->recording == tree_recording &&
	       __atomic_load_n(&tree->lender, __ATOMIC_RELAXED) == &tree_hot &&
	       __atomic_compare_exchange_n(&tree->tid, tid, shim_thread_id(),
					   false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

/* Ends the calls that vfork children have left open: each has executed another program,
 * or ended.  (The engine writes to the tree in use, so that is the child's meanwhile.) */
static COLD void end_children(void)
{
	const struct hot own = tree_hot;
	struct place at;
	uint32_t tid;

	for (at.tree = __atomic_load_n(&trees, __ATOMIC_ACQUIRE); at.tree;
	     at.tree = at.tree->next) {
		if (!claim_tree(at.tree, &tid))
			continue;
		at.tree->lender = NULL;
		at.stack = at.tree->stack;
		at.current = at.tree->current;
		publish_place(&at);
		end_thread(&at);
		tree_hide();
		tree_hot = own;
		__atomic_store_n(&at.tree->tid, tid, __ATOMIC_RELEASE);
	}
}

/* Called when another task runs with this thread's data: a vfork child, or a clone
 * without its own data.  After that, tids identify both tasks. */
static void on_tls_shared(struct shim_profiler *profiler, int begins)
{
	struct place at;
	bool is_there = find_own(&at);
	uint64_t signals;

	(void)profiler;
	if (begins) {
		tree_hot.shared++;
		tree_hide();
		if (is_there) {
			at.tree->stack = at.stack;
			at.tree->current = at.current;
		}
	} else if (--tree_hot.shared == 0) {
		signals = shim_signals_block();
		end_children();
		if (is_there)
			publish_place(&at);
		shim_signals_restore(signals);
	}
}

static void on_thread_ended(struct shim_profiler *profiler)
{
	struct place at;

	(void)profiler;
	if (find_own(&at) && at.tree->tid == shim_thread_id())
		end_thread(&at);
}

struct unloaded {
	uintptr_t low, high;
	uint64_t generation;
};

static void mark_unloaded(struct shim_node *node, void *argument)
{
	const struct unloaded *unloaded = argument;

	if (address_of(node) >= unloaded->low &&
	    address_of(node) < unloaded->high)
		node->function |= unloaded->generation << 48;
}

static void on_image_unloaded(struct shim_profiler *profiler, uintptr_t low,
			      uintptr_t high, uint32_t generation)
{
	struct unloaded unloaded = { low, high, generation };

	(void)profiler;
	last_generation = generation;
	CALL_CLIENTS(image_gone, low, high, generation);
	throttled_image_gone(low, high, generation);
	for (struct tree *tree = __atomic_load_n(&trees, __ATOMIC_ACQUIRE);
	     tree; tree = tree->next) {
		struct table *table = tree->table;

		for (uint64_t i = 0; i < 1ull << (64 - table->shift); i++) {
			if (table->slot[i])
				mark_unloaded(table->slot[i], &unloaded);
		}
	}
	older_each(mark_unloaded, &unloaded);
}

static void on_system_closing(struct shim_profiler *profiler)
{
	enum shim_lost cause;
	struct place at;
	void *memory;
	size_t size;

	(void)profiler;
	if (!find_or_make_own(&at))
		return;
	/* These are the last system calls.  Gets 1 MiB for later nodes. */
	memory = tree_get_memory(at.tree, 1u << 20, &size, &cause);
	if (memory)
		tree_add_chunk(at.tree, memory, size);
	if (at.tree->trace)
		path_writer->closing(at.tree);
	at.tree->closed = true;
	publish_place(&at);
}

static void on_clock_unavailable(struct shim_profiler *profiler)
{
	struct place at;

	(void)profiler;
	tree_hot.no_clock = true;
	tree_hot.below = HOT_NOWHERE;
	if (!find_own(&at))
		return;
	at.tree->careful = true;
	publish_place(&at);
}

static void on_thread_name(struct shim_profiler *profiler, shim_thread thread,
			   const char *name)
{
	shim_thread mine;
	struct place at;

	(void)profiler;
	/* Only its own thread writes a trace. */
	if (shim_thread_current(&mine) == SHIM_OK && mine == thread &&
	    find_own(&at) && at.tree->trace)
		path_writer->thread_named(at.tree, name);
}

void tree_listen(struct shim_profiler_handle *handle)
{
	shim_profiler_on_open_calls_requested(handle, tree_list_open);
	shim_profiler_on_thread_name(handle, on_thread_name);
	shim_profiler_on_jump_saved(handle, on_jump_saved);
	shim_profiler_on_jump_taken(handle, on_jump_taken);
	shim_profiler_on_frames_unwound(handle, on_frames_unwound);
	shim_profiler_on_stack_created(handle, on_stack_created);
	shim_profiler_on_stack_switched(handle, on_stack_switched);
	shim_profiler_on_forked(handle, on_forked);
	shim_profiler_on_recording_began(handle, on_recording_began);
	shim_profiler_on_calls_started(handle, on_calls_started);
	shim_profiler_on_tls_shared(handle, on_tls_shared);
	shim_profiler_on_thread_ended(handle, on_thread_ended);
	shim_profiler_on_image_unloaded(handle, on_image_unloaded);
	shim_profiler_on_clock_unavailable(handle, on_clock_unavailable);
	shim_profiler_on_system_closing(handle, on_system_closing);
}
