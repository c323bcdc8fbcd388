/*
 * The call-path engine records for every path of calls how often it was taken, and for
 * how long.
 *
 * A thread's tree is made of nodes in its mapped file, one per path, and the open calls
 * are simply the nodes from `current` up to the root: a node is open at most once,
 * because recursion makes a deeper path.  So the shadow stack needs no memory of its
 * own and has no depth limit.
 *
 * Enter finds the child by a direct-mapped cache, indexed by values that nearly always
 * differ between paths (function, call site, stack pointer).  It verifies the entry in
 * the node itself, so a signal may leave the cache wrong or torn at any time.  If the
 * cache lacks the path, the engine searches a hash table of all paths; if that lacks
 * it, too, the engine makes a node.  Every step leaves a state that a signal handler
 * may build on: at worst the handler makes a second node for the same path, and the
 * reader adds both.
 *
 * The fast path checks only that the child is right and that the stack pointer is below
 * the parent's.  The check fails for a new thread, a thread without memory, a thread
 * that shares its thread-local data, a jump, and another stack.
 *
 * Clocks.  Exact reads the processor's counter on both ends.  Adaptive does so only for
 * paths whose calls are long.  The other paths read the kernel's tick, which costs a
 * load: the difference of two ticks is nearly always 0, and right on average.
 */
#include "path/opening.h"

#include "path/layout.h"
#include "path/older.h"
#include "path/throttled.h"

#include <stddef.h>

#include <shim/banned.h>

/* --- the slow path --- */

static void lose_call(struct tree *tree, uintptr_t sp)
{
	if (tree->lost_depth++ == 0)
		tree->lost_sp = sp;
	shim_local_add(&tree->root->lost[tree->lost_cause], 1);
	if (path_writer)
		path_writer->lost(tree, tree->lost_cause);
}

/* The open call of @function in this frame has ended, and so have those below it. */
static struct shim_node *drop_same(struct shim_node *current, uint64_t function,
				   uint64_t frame)
{
	struct shim_node *node = current;

	for (; frame_at(node) == frame && !is_root(node);
	     node = parent_of(node))
		if (address_of(node) == function)
			return node_unwind(current, parent_of(node));
	return current;
}

/*
 * A function that was inlined into the function that caught an exception shares its
 * frame.  So the engine misses its end until the function is entered again.  Recursion
 * would have another frame.
 *
 * A coroutine that nothing has announced may end without a leave, as those of Boost do:
 * the first call on its stack, which the next coroutine gets, stays open.
 */
static struct shim_node *drop_missed(const struct place *at, bool has_switched,
				     uint64_t function, uint64_t frame)
{
	if (at->tree->landed != frame && !(has_switched && at->stack->is_guess))
		return at->current;
	return drop_same(at->current, function, frame);
}

static void open_current(struct shim_node *node, uint64_t frame)
{
	uint64_t signals = tree_be_quiet();

	tree_hot.current = node;
	open_call(node, frame);
	shim_signals_restore(signals);
}

static void close_current(struct shim_node *node)
{
	uint64_t signals = tree_be_quiet();
	uint64_t duration = node_duration(node);

	tree_hot.current = parent_of(node);
	close_call(node, duration, false);
	shim_signals_restore(signals);
}

/* Like the fast path of exact times; @time has been read already. */
static void open_timed(struct shim_node *node, uint64_t frame, uint64_t time)
{
	if (UNLIKELY(is_in_doubt(node)))
		node_trust(node);
	node->frame = frame;
	node->start = time;
	shim_local_add(&node->calls, 1);
}

/* Finds the place of a call that begins, or of one that ends. */
static inline bool find_place(struct place *at, struct tree *tree, uintptr_t sp,
			      uint64_t entered, uint64_t left)
{
	bool is_found;

	if (LIKELY(!tree || !tree->attach_clock))
		return tree_find_place(at, tree, sp);
	tree->entered = entered;
	tree->left = left;
	tree->event_sp = sp;
	is_found = tree_find_place(at, tree, sp);
	tree->entered = tree->left = 0;
	return is_found;
}

/* Enters a call in any state of the thread.  Returns its node, or NULL if the call is
 * lost. */
static struct shim_node *enter_in_any_state(uint64_t function, uint16_t group,
					    uintptr_t sp)
{
	struct tree *tree = tree_hot.tree;
	struct place at;
	struct shim_node *node;
	struct stack *before;
	uint64_t frame;

	if (!tree || tree_hot.shared)
		tree = tree_get_for(sp, function, 0);
	before = tree ? tree->stack : NULL;
	if (!find_place(&at, tree, sp, function, 0)) {
		shim_record_lost(tree_hot.cause);
		return NULL;
	}
	tree = at.tree;
	if (UNLIKELY(tree->lost_depth)) {
		if (sp <= tree->lost_sp) {
			lose_call(tree, sp);
			return NULL;
		}
		tree->lost_depth = 0; /* those frames have ended */
	}
	frame = frame_of(sp, at.stack->low);
	at.current = tree_drop_stale(at.stack, at.current, sp);
	at.current = drop_missed(&at, at.stack != before, function, frame);
	node = find(tree->table, at.current, function, group);
	if (UNLIKELY(!node))
		node = node_make(tree, at.current, function, group);
	if (UNLIKELY(!node)) {
		lose_call(tree, sp);
		tree_publish(tree, at.stack, at.current);
		return NULL;
	}
	tree_publish(tree, at.stack, node);
	open_call(node, frame);
	return node;
}

/* Does begin_own for the innermost open call, also while the fast path is off. */
static COLD void begin_own_slowly(void)
{
	struct shim_node *current = tree_hot.current;

	if (current == &tree_no_call && tree_hot.tree)
		current = tree_hot.tree->current;
	tree_begin_own(current);
}

static inline void begin_own(void)
{
	if (UNLIKELY(*tree_hot.tick != tree_hot.last))
		begin_own_slowly();
}

static COLD struct shim_node *enter_slowly(uint64_t function, uint16_t group,
					   uintptr_t sp)
{
	uint64_t signals = tree_be_quiet();
	struct shim_node *node = enter_in_any_state(function, group, sp);

	shim_signals_restore(signals);
	tree_end_own();
	return node;
}

/*
 * Without room, which may last long, a lost call costs no system call.  A signal
 * handler that comes between subtracts what it adds to the depth; or it jumps away, and
 * this function does not continue.
 */
static bool lose_quickly(uintptr_t sp)
{
	struct tree *tree = tree_hot.tree;

	if (tree_hot.shared)
		return false;
	if (!tree) {
		if (tree_hot.retry_clock == 0 || now() >= tree_hot.retry_clock)
			return false;
		shim_record_lost(tree_hot.cause);
		return true;
	}
	if (tree->lost_depth == 0 || sp > tree->lost_sp ||
	    !is_on(tree, tree->stack, sp))
		return false;
	lose_call(tree, sp);
	return true;
}

/* The leave of such a call.  False for the outermost lost call, whose leave has more to
 * do. */
static bool leave_lost(uintptr_t sp)
{
	struct tree *tree = tree_hot.tree;

	if (tree_hot.shared)
		return false;
	if (!tree)
		return !tree_is_older();
	if (tree->lost_depth < 2 || !is_on(tree, tree->stack, sp))
		return false;
	tree->lost_depth--;
	return true;
}

static void count_orphan(void)
{
	struct shim_meta *meta = shim_record_meta();

	if (meta)
		__atomic_fetch_add(&meta->orphans, 1, __ATOMIC_RELAXED);
}

/* A personality routine that is recorded, too, returns after an exception has landed, which
 * ended all calls below that frame. */
static bool is_below_landed(const struct place *at, uintptr_t sp)
{
	return frame_of(sp, at->stack->low) < at->tree->landed &&
	       frame_at(at->current) == at->tree->landed;
}

static void leave_in_any_state(uint64_t function, const void *site,
			       uintptr_t sp)
{
	struct tree *tree = tree_hot.tree;
	struct place at;
	struct shim_node *node;
	uint64_t duration;

	if (tree_hot.shared)
		tree = tree_of_task(shim_thread_id());
	else if (!tree && tree_is_older())
		tree = tree_get_for(sp, 0, function);
	if (!find_place(&at, tree, sp, 0, function))
		return; /* its enter was lost, and counted */
	tree = at.tree;
	if (UNLIKELY(tree->lost_depth)) {
		if (--tree->lost_depth == 0)
			tree_publish(tree, at.stack, at.current);
		return;
	}
	node = tree_find_left(&at, function, site, sp);
	if (!node) {
		if (!throttled_find(function) && !is_below_landed(&at, sp))
			count_orphan();
		if (is_in_doubt(at.current))
			at.current = tree_drop_ended(at.stack, at.current,
						     function, site, sp);
		tree_publish(tree, at.stack, at.current);
		return;
	}
	node_unwind(at.current, node);
	node_trust(node);
	duration = node_duration(node);
	tree_publish(tree, at.stack, parent_of(node));
	close_call(node, duration, false);
}

static COLD void leave_slowly(uint64_t function, const void *site, uintptr_t sp)
{
	uint64_t signals = tree_be_quiet();

	leave_in_any_state(function, site, sp);
	shim_signals_restore(signals);
	tree_end_own();
}

/* --- the fast path --- */

/* These hooks write nothing. */
#define WRITE_SHIFT		     0
#define write_enter_word(time, hits) ((uint32_t)((time) + (hits)))
#define write_leave_word(time)	     ((uint32_t)(time))
#define write_reserve(trace, time, word, becomes, at) \
	((void)(trace), (void)(word), (void)(becomes), (void)(at), false)
#define write_put(trace, at, time, word) \
	((void)(trace), (void)(word), (void)(at))

#include "path/enter.h"
#include "path/threads.h"

/* Completes the step of a writer's fast path that this signal handler has interrupted.
 * Returns whether there was one, and so another call may be current. */
static inline bool tree_settles(void)
{
	return UNLIKELY(tree_is_traced && tree_hot.trace &&
			path_writer->settle(tree_hot.trace));
}

/*
 * A trace has to write the call while it opens, with signals blocked or announced.  To
 * make the node of a new path, neither is necessary, so programs with many paths need no
 * system calls.  Returns NULL if the slow path has more to do.
 */
static inline struct shim_node *make_quietly(struct tree *tree,
					     struct shim_node *current,
					     uint64_t function, uint64_t frame)
{
	if (!tree_is_traced || tree->lost_depth || tree->landed == frame)
		return NULL;
	return node_make(tree, current, function, 0);
}

static bool wants_arguments(shim_function function)
{
	for (const struct path_client **at = path_clients; *at; at++)
		if ((*at)->wants_arguments && (*at)->wants_arguments(function))
			return true;
	return false;
}

/* The cost of calls is being measured, in a thread without a tree, and an interruption was
 * too long for a short record: the measurement starts again with an empty buffer. */
static COLD void measure_again(void)
{
	if (path_writer)
		path_writer->measure();
}

__attribute__((noinline)) void tree_enter_missed(uint64_t function,
						 const void *site, uintptr_t sp,
						 struct shim_node *current,
						 uint64_t clock)
{
	struct tree *tree = tree_hot.tree;
	uint64_t frame = frame_here(sp);
	struct shim_node *node, **place;

	begin_own();
	if (throttled_is_used() && throttled_ignores_enter(function, site, sp))
		return;
	if (tree_settles()) {
		current = tree_hot.current;
		clock = 0;
	}
	if (UNLIKELY(path_clients[0] != NULL) && wants_arguments(function)) {
		/* A tail call: nothing may take the address of a variable or parameter. */
		shim_hook_defer(function, site);
		return;
	}
	if (UNLIKELY(current == &tree_no_call || frame > current->frame)) {
		if (current != &tree_no_call || !lose_quickly(sp))
			enter_slowly(function, 0, sp);
		return;
	}
	if (UNLIKELY(!tree)) {
		measure_again();
		return;
	}
	place = cache_place(hint_of(function, site, frame));
	node = *place;
	if ((node->function | SHIM_NODE_EXACT) !=
		    (function | SHIM_NODE_EXACT) ||
	    node->parent != (uint64_t)current) {
		node = find(tree->table, current, function, 0);
		if (UNLIKELY(!node))
			node = make_quietly(tree, current, function, frame);
		if (UNLIKELY(!node)) {
			enter_slowly(function, 0, sp);
			return;
		}
		*place = node;
	}
	if (tree_is_traced) {
		clock = clock ? clock : shim_clock_read();
		if (!path_writer->open(node, frame, clock))
			open_current(node, frame);
		return;
	}
	tree_hot.current = node;
	if (tree_mode == EXACT && clock)
		open_timed(node, frame, clock);
	else
		open_call(node, frame);
}

__attribute__((noinline)) void tree_leave_missed(uint64_t function,
						 const void *site, uintptr_t sp)
{
	struct shim_node *node = tree_hot.current;

	begin_own();
	if (throttled_is_used() && throttled_ignores_leave(function, site, sp))
		return;
	if (tree_settles())
		node = tree_hot.current;
	if (UNLIKELY(!tree_hot.tree && node != &tree_no_call)) {
		if (node->function == function)
			tree_hot.current = parent_of(node);
		measure_again();
		return;
	}

	/* The functions differ only in the flag: the path is exact, or a short record
	 * does not fit. */
	if ((node->function | SHIM_NODE_EXACT) ==
		    (function | SHIM_NODE_EXACT) &&
	    !is_in_doubt(node)) {
		uint64_t now = tree_mode == COUNTS && !tree_is_traced ?
				       0 :
				       shim_clock_read();

		if (tree_is_traced) {
			if (!path_writer->close(node, now))
				close_current(node);
			return;
		}
		tree_hot.current = parent_of(node);
		count_call(node, tree_mode == COUNTS ? 0 : now - node->start);
		tree_end_own();
		return;
	}
	if (node != &tree_no_call || !leave_lost(sp))
		leave_slowly(function, site, sp);
}

#define IS_AT(where, field, offset) \
	_Static_assert(offsetof(struct where, field) == (offset), "layout.h")

IS_AT(hot, current, LAYOUT_HOT_CURRENT);
IS_AT(hot, below, LAYOUT_HOT_BELOW);
IS_AT(hot, cache_mask, LAYOUT_HOT_CACHE_MASK);
IS_AT(hot, cache, LAYOUT_HOT_CACHE);
IS_AT(hot, tick, LAYOUT_HOT_TICK);
IS_AT(hot, last, LAYOUT_HOT_LAST);
IS_AT(hot, clock, LAYOUT_HOT_CLOCK);
IS_AT(shim_node, function, LAYOUT_NODE_FUNCTION);
IS_AT(shim_node, parent, LAYOUT_NODE_PARENT);
IS_AT(shim_node, calls, LAYOUT_NODE_CALLS);
IS_AT(shim_node, time, LAYOUT_NODE_TIME);
IS_AT(shim_node, start, LAYOUT_NODE_START);
IS_AT(shim_node, frame, LAYOUT_NODE_FRAME);
IS_AT(shim_node, extra, LAYOUT_NODE_EXTRA);
IS_AT(shim_extra_node, last, LAYOUT_EXTRA_LAST);
IS_AT(shim_extra_node, range_low, LAYOUT_EXTRA_RANGE_LOW);
IS_AT(shim_extra_node, range_span, LAYOUT_EXTRA_RANGE_SPAN);
IS_AT(shim_extra_node, bucket, LAYOUT_EXTRA_BUCKET);
IS_AT(hot, trace, LAYOUT_HOT_TRACE);
IS_AT(shim_node, hits, LAYOUT_NODE_HITS);
_Static_assert(SHIM_SHORT_BUCKETS == LAYOUT_SHORT_BUCKETS, "layout.h");

HOT void tree_exact_leave_any(shim_function function, const void *site)
{
	leave(function, site, SP, EXACT, false);
}

#ifndef HAS_ASSEMBLY /* calls_x86_64.S */
HOT void tree_counts_enter(shim_function function, const void *site)
{
	enter(function, site, SP, COUNTS, false);
}

HOT void tree_exact_enter(shim_function function, const void *site)
{
	enter(function, site, SP, EXACT, false);
}

HOT void tree_exact_leave(shim_function function, const void *site)
{
	leave(function, site, SP, EXACT, false);
}
#endif

static HOT void counts_leave(shim_function function, const void *site)
{
	leave(function, site, SP, COUNTS, false);
}

HOOKS(coarse, COARSE, false)

const shim_site_hook tree_hooks[4][2] = {
	[COUNTS] = { tree_counts_enter, counts_leave },
	[COARSE] = { coarse_enter, coarse_leave },
	[EXACT] = { tree_exact_enter, tree_exact_leave },
};

/* --- hooks that marks reach directly --- */

#ifdef HAS_ASSEMBLY /* marks_x86_64.S */
void tree_enter_ticked(struct shim_node *parent)
{
	node_enter_ticked(parent, tree_hot.last, *tree_hot.tick);
}

void tree_leave_ticked(struct shim_node *node)
{
	leave_ticked(node, tree_hot.clock, tree_hot.last, *tree_hot.tick);
}

static const struct shim_mark_hooks mark_hooks[4] = {
	[COUNTS] = { { tree_counts_sled_entry0, tree_counts_sled_entry4 },
		     tree_counts_sled_leave,
		     tree_counts_entry,
		     tree_counts_entry_kept,
		     tree_counts_returned },
	[COARSE] = { { tree_coarse_sled_entry0, tree_coarse_sled_entry4 },
		     tree_coarse_sled_leave,
		     tree_coarse_entry,
		     tree_coarse_entry_kept,
		     tree_coarse_returned },
};

const struct shim_mark_hooks *tree_mark_hooks(void)
{
	return path_writer || !mark_hooks[tree_mode].entry ?
		       NULL :
		       &mark_hooks[tree_mode];
}
#else
const struct shim_mark_hooks *tree_mark_hooks(void)
{
	return NULL;
}
#endif

/* --- after a restart, and beside other profilers --- */

RESTARTED(counts, COUNTS, false)
RESTARTED(coarse, COARSE, false)
RESTARTED(exact, EXACT, false)

const shim_site_hook tree_hooks_again[4][2] = {
	[COUNTS] = { counts_enter_again, counts_leave_again },
	[COARSE] = { coarse_enter_again, coarse_leave_again },
	[EXACT] = { exact_enter_again, exact_leave_again },
};

static const shim_frame_hook hooks_at[4][2] = {
	[COUNTS] = { counts_enter_at, counts_leave_at },
	[COARSE] = { coarse_enter_at, coarse_leave_at },
	[EXACT] = { exact_enter_at, exact_leave_at },
};

/* The pair of hooks of the mode, in this file or of path_writer. */
const shim_frame_hook *tree_frame_hooks(void)
{
	return path_writer ? path_writer->at[tree_mode] : hooks_at[tree_mode];
}

/* --- calls of groups, and with arguments --- */

/* Like open_current().  @arguments are written before any signal handler can run. */
static void open_current_with(struct shim_node *node, uint64_t frame,
			      void *arguments)
{
	uint64_t signals = tree_be_quiet();

	tree_hot.current = node;
	open_call(node, frame);
	if (arguments)
		path_writer->opened_with(node, arguments);
	shim_signals_restore(signals);
}

void tree_begin_arguments(shim_function function, const void *site,
			  uintptr_t sp)
{
	if (must_look_back())
		tree_look_back(function, site, sp, true);
	begin_own();
}

struct shim_node *tree_enter_group(shim_function function, uint16_t group,
				   uintptr_t sp, void *arguments)
{
	struct shim_node *current, *node = NULL;
	uint64_t frame;

	tree_settles();
	current = tree_hot.current;
	frame = frame_here(sp);
	if (LIKELY(current != &tree_no_call && frame <= current->frame))
		node = find(tree_hot.tree->table, current, function, group);
	if (UNLIKELY(!node))
		return enter_slowly(function, group, sp);
	if (tree_is_traced) {
		if (!path_writer->open_with(node, frame, arguments))
			open_current_with(node, frame, arguments);
		return node;
	}
	tree_hot.current = node;
	open_call(node, frame);
	return node;
}

/* Enters a call that tree_enter_missed deferred; with other profilers' hooks, any
 * call. */
void tree_enter_deferred(shim_function function, const void *site, uintptr_t sp,
			 shim_elt_info info)
{
	for (const struct path_client **at = path_clients; *at; at++)
		if ((*at)->enter && (*at)->enter(function, site, sp, info))
			return;
	tree_frame_hooks()[0](function, site, sp);
}
