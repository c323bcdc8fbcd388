/*
 * calltree: for every path of calls, how often it was taken and how long.
 *
 * A thread's tree is made of nodes in its mapped file, one per path, and the
 * open calls are simply the nodes from `current` up to the root: a node is open
 * at most once, because recursion makes a deeper path.  So the shadow stack
 * needs no memory of its own and has no depth limit.
 *
 * Enter finds the child by a direct-mapped cache over what tells paths apart
 * nearly always (function, call site, stack pointer) and verifies what it
 * finds in the node itself, so the cache may be wrong or torn by a signal at
 * any time.  Behind it is a hash table of all paths; behind that a new node is
 * made.  Every step leaves a state that a signal handler may build on: at worst
 * it makes a second node for the same path, and the reader adds them up.
 *
 * "Is the child right, and is the stack pointer below the parent's?" is all the
 * fast path asks.  A new thread, a thread without memory, one that shares its
 * thread-local data, a jump, another stack: each of them makes the answer no.
 *
 * Clocks.  Exact reads the processor's counter on both ends.  Adaptive does so
 * only for paths whose calls are long; the rest read the kernel's tick, which
 * costs a load: the difference of two ticks is 0 nearly always, and right on
 * average.
 */
#include "calltree.h"

#include "calltree_layout.h"
#include "words.h"

#include <stddef.h>

#include <shim/banned.h>

/* A path is timed exactly while its calls take at least this long on average,
 * looked at every 32 calls; twice as long brings it back. */
#define LONG_NS 500

struct shim_node tree_nobody = { .function = ~0ull };
struct shim_node tree_no_child = { .function = ~0ull,
				   .parent = (uint64_t)&tree_nobody };
static struct shim_node *no_cache[1] = { &tree_no_child };

__thread struct hot tree_hot = { .current = &tree_nobody,
				 .below = HOT_NOWHERE,
				 .cache = no_cache,
				 .tick = &cost_no_tick };

enum clock tree_mode;
bool tree_has_file;
const volatile uint64_t *tree_tick;
uint64_t tree_long_clock;

/* --- what the fast path could not do --- */

static void lose_call(struct tree *tree, uintptr_t sp)
{
	if (tree->lost_depth++ == 0)
		tree->lost_sp = sp;
	shim_local_add(&tree->root->lost[tree->lost_cause], 1);
	trace_lose(tree, tree->lost_cause);
}

/*
 * A function inlined into the one that caught an exception shares its frame, so
 * nobody can tell that it ended, until it is entered again: recursion would
 * have a frame of its own.
 */
static struct shim_node *drop_inlined(const struct tree *tree,
				      struct shim_node *current,
				      uint64_t function, uint64_t frame)
{
	struct shim_node *node = current;

	if (tree->landed != frame)
		return current;
	for (; frame_at(node) == frame && !is_root(node); node = parent_of(node))
		if (address_of(node) == function)
			return node_unwind(current, parent_of(node));
	return current;
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

/* What the fast path of exact times does; the clock has been read for it. */
static void open_timed(struct shim_node *node, uint64_t frame, uint64_t time)
{
	if (UNLIKELY(is_in_doubt(node)))
		node_trust(node);
	node->frame = frame;
	node->start = time;
	shim_local_add(&node->calls, 1);
}

/* The call's node, or NULL if it is lost. */
static struct shim_node *enter_anyhow(uint64_t function, uint16_t group,
				      uintptr_t sp)
{
	struct tree *tree = tree_hot.tree;
	struct place at;
	struct shim_node *node;
	uint64_t frame;

	if (!tree || tree_hot.shared)
		tree = tree_get(sp);
	if (!tree_find_place(&at, tree, sp)) {
		shim_record_lost(tree_hot.cause);
		return NULL;
	}
	tree = at.tree;
	if (UNLIKELY(tree->lost_depth)) {
		if (sp <= tree->lost_sp) {
			lose_call(tree, sp);
			return NULL;
		}
		tree->lost_depth = 0; /* those frames are gone */
	}
	frame = frame_of(sp, at.stack->low);
	at.current = tree_drop_stale(at.stack, at.current, sp);
	at.current = drop_inlined(tree, at.current, function, frame);
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

/* Of what is open, also where the fast path is off. */
static COLD void begin_own_slowly(void)
{
	struct shim_node *current = tree_hot.current;

	if (current == &tree_nobody && tree_hot.tree)
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
	struct shim_node *node = enter_anyhow(function, group, sp);

	shim_signals_restore(signals);
	tree_end_own();
	return node;
}

/*
 * Where there is no room, which goes on for long, a lost call costs no system call.
 * What a handler that comes between adds to the depth it takes back, or jumps out of,
 * and then nothing goes on here.
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
	    !contains(tree->stack, sp))
		return false;
	lose_call(tree, sp);
	return true;
}

/* The leave of such a call: the last one has more to do. */
static bool leave_lost(uintptr_t sp)
{
	struct tree *tree = tree_hot.tree;

	if (tree_hot.shared)
		return false;
	if (!tree)
		return true;
	if (tree->lost_depth < 2 || !contains(tree->stack, sp))
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

static void leave_anyhow(uint64_t function, const void *site, uintptr_t sp)
{
	struct tree *tree = tree_hot.tree;
	struct place at;
	struct shim_node *node;
	uint64_t duration;

	if (tree_hot.shared)
		tree = tree_of_task(shim_thread_id());
	if (!tree_find_place(&at, tree, sp))
		return; /* its enter was lost, and counted */
	tree = at.tree;
	if (UNLIKELY(tree->lost_depth)) {
		if (--tree->lost_depth == 0)
			tree_publish(tree, at.stack, at.current);
		return;
	}
	node = tree_find_left(&at, function, site, sp);
	if (!node) {
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

static COLD void leave_slowly(uint64_t function, const void *site,
			      uintptr_t sp)
{
	uint64_t signals = tree_be_quiet();

	leave_anyhow(function, site, sp);
	shim_signals_restore(signals);
	tree_end_own();
}

/* --- the fast path --- */

/*
 * Tells paths apart by what is at hand before the parent is: else every enter
 * would wait for the leave before it.
 *
 * Functions and frames are multiples of 16 nearly always, so nothing need be
 * shifted to get at the offset of a pointer: the call site has the rest.
 */
static inline __attribute__((always_inline)) uint32_t
hint_of(uint64_t function, const void *site, uint64_t frame)
{
	return ((uint32_t)function + (uint32_t)frame) ^
	       (uint32_t)(uintptr_t)site;
}

/* A handler that came into the fast path: what was current may not be. */
static inline bool tree_is_settled(struct shim_node **current)
{
	if (LIKELY(!tree_is_traced || !tree_hot.trace ||
		   (!tree_hot.trace->busy && !tree_hot.trace->held)))
		return false;
	trace_settle(tree_hot.trace);
	*current = tree_hot.current;
	return true;
}

__attribute__((noinline)) void
tree_enter_missed(uint64_t function, const void *site, uintptr_t sp,
		  struct shim_node *current, uint64_t clock)
{
	struct tree *tree = tree_hot.tree;
	uint64_t frame = frame_here(sp);
	struct shim_node *node, **place;

	begin_own();
	if (tree_is_settled(&current))
		clock = 0;
	if (UNLIKELY(by_is_wanted) && by_find(function)) {
		shim_hook_defer(function, site);
		return;
	}
	if (UNLIKELY(trace_asks_arguments) && trace_asks(function)) {
		shim_hook_defer(function, site);
		return;
	}
	if (UNLIKELY(current == &tree_nobody || frame > current->frame)) {
		if (current != &tree_nobody || !lose_quickly(sp))
			enter_slowly(function, 0, sp);
		return;
	}
	/* What calls cost is being measured, and something came between. */
	if (UNLIKELY(!tree)) {
		tree_hot.trace->last = shim_clock_read() >> TRACE_SHIFT;
		return;
	}
	place = cache_place(hint_of(function, site, frame));
	node = *place;
	if ((node->function | SHIM_NODE_EXACT) !=
		    (function | SHIM_NODE_EXACT) ||
	    node->parent != (uint64_t)current) {
		node = find(tree->table, current, function, 0);
		if (UNLIKELY(!node)) {
			enter_slowly(function, 0, sp);
			return;
		}
		*place = node;
	}
	if (tree_is_traced) {
		clock = clock ? clock : shim_clock_read();
		if (!tree_open_traced(node, frame, clock))
			open_current(node, frame);
		return;
	}
	tree_hot.current = node;
	if (tree_mode == EXACT && clock)
		open_timed(node, frame, clock);
	else
		open_call(node, frame);
}

static __attribute__((noinline)) void
leave_missed(uint64_t function, const void *site, uintptr_t sp)
{
	struct shim_node *node = tree_hot.current;

	begin_own();
	tree_is_settled(&node);

	/* Without the flag: there was no room for a short record. */
	if ((node->function | SHIM_NODE_EXACT) ==
		    (function | SHIM_NODE_EXACT) &&
	    !is_in_doubt(node)) {
		uint64_t now = tree_mode == COUNTS && !tree_is_traced ?
				       0 : shim_clock_read();

		if (tree_is_traced) {
			if (!tree_close_traced(node, now))
				close_current(node);
			return;
		}
		tree_hot.current = parent_of(node);
		count_call(node, tree_mode == COUNTS ? 0 : now - node->start);
		tree_end_own();
		return;
	}
	if (node != &tree_nobody || !leave_lost(sp))
		leave_slowly(function, site, sp);
}

/* The clock has ticked since it was @start, in the call or in its leave. */
static COLD void leave_ticked(struct shim_node *node, uint64_t start,
			      uint64_t before, uint64_t after)
{
	if (after != tree_hot.last)
		node_ticked(node, before, after);
	if (before == start)
		return;
	shim_local_add(&node->time, before - start);
	node_choose_clock(node);
}

static inline __attribute__((always_inline)) void
enter(uint64_t function, const void *site, uintptr_t sp, enum clock clock,
      bool is_traced)
{
	uint64_t time = clock == COARSE ? *tree_hot.tick : 0, after;
	uint64_t frame = frame_here(sp);
	struct shim_node **place = cache_place(hint_of(function, site, frame));
	struct shim_node *node, *current;
	struct trace *trace = NULL;
	uint32_t word = 0;
	char *at = NULL;

	if (clock == EXACT || is_traced) {
		if (UNLIKELY(is_far(frame))) {
			tree_enter_missed(function, site, sp, tree_hot.current,
					  0);
			return;
		}
		time = shim_clock_read();
	}
	current = tree_hot.current;
	node = *place;
	if (UNLIKELY(frame > current->frame) ||
	    UNLIKELY(node->function != function) ||
	    UNLIKELY(node->parent != (uint64_t)current)) {
		tree_enter_missed(function, site, sp, tree_hot.current, time);
		return;
	}
	if (is_traced) {
		trace = tree_hot.trace;
		word = trace_enter_word(time >> TRACE_SHIFT, node->hits);
		node->frame = frame;
		if (!trace_reserve(trace, time >> TRACE_SHIFT, word, node,
				   &at)) {
			node->frame = 0;
			tree_enter_missed(function, site, sp, tree_hot.current,
					  0);
			return;
		}
	}
	/* Current first: what a handler calls from here on is the node's child.
	 * (The compiler keeps this order: every store below may alias it.) */
	__atomic_store_n(&tree_hot.current, node, __ATOMIC_RELEASE);
	if (!is_traced)
		node->frame = frame;
	if (clock != TRACED)
		shim_local_add(&node->calls, 1);
	if (clock == COARSE) {
		node->start = after = *tree_hot.tick;
		if (UNLIKELY(after != tree_hot.last))
			node_ticked(current, time, after);
	} else if (clock == EXACT) {
		node->start = time;
	}
	if (is_traced)
		trace_put(trace, at, time >> TRACE_SHIFT, word);
}

static inline __attribute__((always_inline)) void
leave(uint64_t function, const void *site, uintptr_t sp, enum clock clock,
      bool is_traced)
{
	struct shim_node *node = tree_hot.current;
	struct shim_node *parent = (struct shim_node *)__atomic_load_n(
		&node->parent, __ATOMIC_ACQUIRE); /* first: parent_of() */
	struct shim_extra_node *extra = NULL;
	uint64_t now = clock == COARSE ? *tree_hot.tick : 0, start;
	uint64_t duration, last = 0, after;
	struct trace *trace = NULL;
	uint32_t word = 0;
	char *at = NULL;

	if (UNLIKELY(node->function != function)) {
		leave_missed(function, site, sp);
		return;
	}
	if (clock == EXACT)
		extra = (struct shim_extra_node *)node->extra;
	if (clock == EXACT || is_traced)
		now = shim_clock_read();
	if (is_traced) {
		trace = tree_hot.trace;
		word = trace_leave_word(now >> TRACE_SHIFT);
		if (!trace_reserve(trace, now >> TRACE_SHIFT, word, parent,
				   &at)) {
			leave_missed(function, site, sp);
			return;
		}
	}
	start = clock == COUNTS || clock == TRACED ? now : node->start;
	duration = now - start;
	if (clock == EXACT && LIKELY(extra != NULL))
		last = exchange_last(extra, duration);
	__atomic_store_n(&tree_hot.current, parent, __ATOMIC_RELEASE);
	node->frame = 0;
	if (clock == COARSE) {
		after = *tree_hot.tick;
		if (UNLIKELY(after != tree_hot.last) ||
		    UNLIKELY(now != start))
			leave_ticked(node, start, now, after);
	} else if (clock == EXACT) {
		shim_local_add(&node->time, duration);
		if (LIKELY(extra != NULL))
			count_duration(extra, last);
		else
			node_add_extra(node, duration);
	}
	if (is_traced)
		trace_put(trace, at, now >> TRACE_SHIFT, word);
}

/* The program's stack pointer, in a hook that was called directly. */
#define SP SHIM_CALLER_SP

#define HOOKS(name, clock, is_traced)                                          \
	static HOT void name##_enter(shim_function function, const void *site) \
	{                                                                      \
		enter(function, site, SP, clock, is_traced);                   \
	}                                                                      \
	static HOT void name##_leave(shim_function function, const void *site) \
	{                                                                      \
		leave(function, site, SP, clock, is_traced);                   \
	}

#define IS_AT(where, field, offset)                                            \
	_Static_assert(offsetof(struct where, field) == (offset),              \
		       "calltree_layout.h")

IS_AT(hot, current, LAYOUT_HOT_CURRENT);
IS_AT(hot, below, LAYOUT_HOT_BELOW);
IS_AT(hot, cache_mask, LAYOUT_HOT_CACHE_MASK);
IS_AT(hot, cache, LAYOUT_HOT_CACHE);
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
IS_AT(trace, cursor, LAYOUT_TRACE_CURSOR);
IS_AT(trace, limit, LAYOUT_TRACE_LIMIT);
IS_AT(trace, last, LAYOUT_TRACE_LAST);
IS_AT(trace, busy, LAYOUT_TRACE_BUSY);
IS_AT(trace, word, LAYOUT_TRACE_WORD);
IS_AT(trace, becomes, LAYOUT_TRACE_BECOMES);
IS_AT(trace, settled, LAYOUT_TRACE_SETTLED);
_Static_assert(TRACE_TIME_MASK == LAYOUT_TRACE_TIME_MASK, "calltree_layout.h");
_Static_assert(SHIM_SHORT_BUCKETS == LAYOUT_SHORT_BUCKETS, "calltree_layout.h");

HOT void tree_exact_leave_any(shim_function function, const void *site)
{
	leave(function, site, SP, EXACT, false);
}

/* A leave of which nothing is counted. */
HOT void tree_traced_leave_any(shim_function function, const void *site)
{
	leave(function, site, SP, COUNTS, true);
}

#ifndef HAS_ASSEMBLY /* calltree_x86_64.S, trace_x86_64.S */
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

HOT void tree_traced_enter(shim_function function, const void *site)
{
	enter(function, site, SP, TRACED, true);
}

HOT void tree_traced_leave(shim_function function, const void *site)
{
	leave(function, site, SP, COUNTS, true);
}
#endif

static HOT void counts_leave(shim_function function, const void *site)
{
	leave(function, site, SP, COUNTS, false);
}

HOOKS(coarse, COARSE, false)
HOOKS(exact_traced, EXACT, true)

static HOT void counts_traced_enter(shim_function function, const void *site)
{
	enter(function, site, SP, COUNTS, true);
}

const shim_site_hook tree_hooks[4][2] = {
	[COUNTS] = { tree_counts_enter, counts_leave },
	[COARSE] = { coarse_enter, coarse_leave },
	[EXACT] = { tree_exact_enter, tree_exact_leave },
};

const shim_site_hook tree_traced_hooks[4][2] = {
	/* There is nothing to count at a leave. */
	[COUNTS] = { counts_traced_enter, tree_traced_leave },
	[EXACT] = { exact_traced_enter, exact_traced_leave },
	[TRACED] = { tree_traced_enter, tree_traced_leave },
};

/* --- once calls were off, and beside other profilers --- */

static inline __attribute__((always_inline)) bool must_look_back(void)
{
	return UNLIKELY(tree_hot.starts !=
			__atomic_load_n(&tree_starts, __ATOMIC_RELAXED));
}

#define RESTARTED(name, clock, is_traced)                                      \
	static void name##_enter_at(shim_function function, const void *site,  \
				    uintptr_t sp)                              \
	{                                                                      \
		if (must_look_back())                                          \
			tree_look_back(function, site, sp, true);              \
		enter(function, site, sp, clock, is_traced);                   \
	}                                                                      \
	static void name##_leave_at(shim_function function, const void *site,  \
				    uintptr_t sp)                              \
	{                                                                      \
		if (must_look_back())                                          \
			tree_look_back(function, site, sp, false);             \
		leave(function, site, sp, clock, is_traced);                   \
	}                                                                      \
	static HOT void name##_enter_again(shim_function function,             \
					   const void *site)                   \
	{                                                                      \
		if (must_look_back())                                          \
			name##_enter_at(function, site, SP);                   \
		else                                                           \
			enter(function, site, SP, clock, is_traced);           \
	}                                                                      \
	static HOT void name##_leave_again(shim_function function,             \
					   const void *site)                   \
	{                                                                      \
		if (must_look_back())                                          \
			name##_leave_at(function, site, SP);                   \
		else                                                           \
			leave(function, site, SP, clock, is_traced);           \
	}

RESTARTED(counts, COUNTS, false)
RESTARTED(coarse, COARSE, false)
RESTARTED(exact, EXACT, false)
RESTARTED(counts_traced, COUNTS, true)
RESTARTED(exact_traced, EXACT, true)
RESTARTED(traced, TRACED, true)

/* By whether there is a trace, and by mode. */
static const shim_site_hook hooks_again[2][4][2] = { {
	[COUNTS] = { counts_enter_again, counts_leave_again },
	[COARSE] = { coarse_enter_again, coarse_leave_again },
	[EXACT] = { exact_enter_again, exact_leave_again },
}, {
	[COUNTS] = { counts_traced_enter_again, counts_traced_leave_again },
	[EXACT] = { exact_traced_enter_again, exact_traced_leave_again },
	[TRACED] = { traced_enter_again, traced_leave_again },
} };

static const shim_frame_hook hooks_at[2][4][2] = { {
	[COUNTS] = { counts_enter_at, counts_leave_at },
	[COARSE] = { coarse_enter_at, coarse_leave_at },
	[EXACT] = { exact_enter_at, exact_leave_at },
}, {
	[COUNTS] = { counts_traced_enter_at, counts_traced_leave_at },
	[EXACT] = { exact_traced_enter_at, exact_traced_leave_at },
	[TRACED] = { traced_enter_at, traced_leave_at },
} };

/* --- grouped calls, and those with arguments --- */

/* Whether it is in the trace, or may come to be. */
static bool is_traced_call(const struct shim_node *node)
{
	return !(node->frame & FRAME_LEFT_OUT) || frame_waits(node->frame);
}

/* As open_current(), with arguments before any handler. */
static void open_current_asked(struct shim_node *node, uint64_t frame,
			       struct trace_record *arguments)
{
	uint64_t signals = tree_be_quiet();

	tree_hot.current = node;
	open_call(node, frame);
	if (arguments && is_traced_call(node)) {
		trace_put_values(arguments);
		arguments->size = 0;
	}
	shim_signals_restore(signals);
}

static struct shim_node *enter_group(shim_function function, uint16_t group,
				     uintptr_t sp,
				     struct trace_record *arguments)
{
	struct shim_node *current = tree_hot.current, *node = NULL;
	uint64_t frame;

	tree_is_settled(&current);
	frame = frame_here(sp);
	if (LIKELY(current != &tree_nobody && frame <= current->frame))
		node = find(tree_hot.tree->table, current, function, group);
	if (UNLIKELY(!node))
		return enter_slowly(function, group, sp);
	if (tree_is_traced) {
		if (!tree_open_asked(node, frame, arguments))
			open_current_asked(node, frame, arguments);
		return node;
	}
	tree_hot.current = node;
	open_call(node, frame);
	return node;
}

/* The callers did not take this long.  (Rounded so that it is right on
 * average.) */
static void note_asking(struct shim_node *node, uint64_t before)
{
	uint64_t units = node->start / SHIM_ASKING_UNIT -
			 before / SHIM_ASKING_UNIT;

	node->hits = units < UINT32_MAX - node->hits ?
			     node->hits + (uint32_t)units :
			     UINT32_MAX;
}

/* false: its arguments are not to be recorded. */
static __attribute__((noinline)) bool
enter_traced(shim_function function, const void *site, uintptr_t sp,
	     shim_elt_info info)
{
	struct trace_record record;
	enum trace_answer answer = trace_ask(function, info, &record);
	bool is_there = answer == TRACE_AS_BYTES;
	struct shim_node *node;

	if (answer == TRACE_NOT_ASKED)
		return false;
	if (must_look_back())
		tree_look_back(function, site, sp, true);
	node = enter_group(function, 0, sp, is_there ? &record : NULL);
	if (!node || !is_traced_call(node))
		return true;
	if (is_there && record.size)
		trace_put_values(&record);
	else if (answer == TRACE_AS_TEXT)
		trace_say_arguments(function, info);
	return true;
}

/* A call that enter_missed handed over; beside other profilers, any call. */
static void enter_asked(shim_function function, const void *site, uintptr_t sp,
			shim_elt_info info)
{
	unsigned by = by_is_wanted ? by_find(function) : 0;
	struct shim_node *node;
	uint64_t before;
	uint16_t group;

	if (!by && trace_asks_arguments &&
	    enter_traced(function, site, sp, info))
		return;
	if (!by) {
		hooks_at[tree_is_traced][tree_mode][0](function, site, sp);
		return;
	}
	before = tree_mode == COUNTS ? 0 : now();
	if (must_look_back())
		tree_look_back(function, site, sp, true);
	begin_own();
	group = by_group(by, function, info);
	node = enter_group(function, group, sp, NULL);
	if (node && group && tree_mode != COUNTS)
		note_asking(node, before);
	tree_end_own();
}

/* --- start --- */

static enum clock asked_mode;

static bool read_item(const char *item, size_t size)
{
	const char *value = value_of(item, size, "by=");

	if (value)
		return by_add(value, size - (size_t)(value - item));
	value = value_of(item, size, "by-limit=");
	if (value)
		return by_limit(value, size - (size_t)(value - item));
	if (is_word(item, size, "counts"))
		asked_mode = COUNTS;
	else if (is_word(item, size, "exact"))
		asked_mode = EXACT;
	else
		return false;
	return true;
}

static bool read_arguments(const char *arguments)
{
	asked_mode = COARSE;
	if (*arguments == '\0')
		return true;
	for (;;) {
		size_t size = 0;

		while (arguments[size] && arguments[size] != ',')
			size++;
		if (!read_item(arguments, size))
			return false;
		if (arguments[size] == '\0')
			return true;
		arguments += size + 1;
	}
}

/* Who traces has read the clock for every call: then all are timed exactly. */
static enum clock choose_mode(void)
{
	enum clock mode = asked_mode;

	if (!tree_has_file)
		return TRACED;
	if (mode == COARSE && (tree_is_traced || !tree_tick))
		mode = EXACT;
	/* Forbidden before this program was executed: no clock at all. */
	return shim_clock_is_closed() ? COUNTS : mode;
}

int tree_start(void)
{
	static struct shim_profiler_handle *handle;
	struct shim_meta *meta = shim_record_meta();
	const shim_site_hook *hooks;
	uint64_t tick_length;

	tree_tick = shim_clock_coarse(&tick_length);
	tree_mode = choose_mode();
	hooks = tree_is_traced ? tree_traced_hooks[tree_mode] :
				 tree_hooks[tree_mode];
	tree_long_clock = meta->clock_hz ?
			  meta->clock_hz / (1000000000 / LONG_NS) : 1000;
	tree_describe_cost(meta);
	if (!handle) {
		handle = shim_profiler_create(NULL);
		tree_listen(handle);
	}
	shim_profiler_set_enter_leave_function_hooks3(handle, SHIM_SITE_HOOK(hooks[0]),
					     SHIM_SITE_HOOK(hooks[1]), NULL);
	hooks = hooks_again[tree_is_traced][tree_mode];
	shim_profiler_set_restart_hooks(handle, SHIM_SITE_HOOK(hooks[0]),
			       SHIM_SITE_HOOK(hooks[1]));
	shim_profiler_set_chained_hooks(handle, hooks_at[tree_is_traced][tree_mode][0],
			     hooks_at[tree_is_traced][tree_mode][1]);
	shim_profiler_set_raw_leave_hooks(handle);
	if (by_is_wanted || trace_asks_arguments)
		shim_profiler_set_deferred_hook(handle, enter_asked);
	if (by_is_wanted)
		by_start();
	return 0;
}

int calltree_start(const char *arguments);

/* @arguments: separated by commas, "exact" or "counts", "by=FUNCTION/ARGUMENT",
 * "by-limit=N".  0, or -1 if it is none of them. */
int calltree_start(const char *arguments)
{
	if (!read_arguments(arguments))
		return -1;
	tree_has_file = true;
	return tree_start();
}
