/* Opens and closes one call, on the fast path and off it. */
#ifndef PATH_OPENING_H
#define PATH_OPENING_H

#include "path/path.h"
#include "path/calls.h"
#include "path/cpu_time.h"
#include "path/nodes.h"
#include "path/doubt.h"
#include "path/restart.h"
#include "path/times.h"

/* --- the owner of the time --- */

/* Ends the program's time in a call of @node.  The time from now on belongs to the
 * profiler, in a hook or an event. */
static inline void tree_begin_own(struct shim_node *node)
{
	uint64_t tick = *tree_hot.tick;

	if (UNLIKELY(tick != tree_hot.last))
		node_ticked(node, tick, tick);
}

static inline void tree_end_own(void)
{
	uint64_t tick = *tree_hot.tick, time;

	if (LIKELY(tick == tree_hot.last))
		return;
	time = time_of_tick(tick);
	if (tree_is_cpu)
		cpu_count_waiting(tree_hot.current,
				  cpu_leave_out_waiting(tree_hot.clock, time));
	set_tick(tick, time);
}

/* --- opening and closing one call --- */

static inline bool is_exact(const struct shim_node *node)
{
	return tree_mode >= EXACT ||
	       ((node->function & SHIM_NODE_EXACT) && !tree_is_cpu);
}

/*
 * Keeps the trace and the tree in agreement about each call, also for a signal handler
 * that comes between.  Either the short record is announced before the tree changes, or
 * signals are blocked.  The result is for shim_signals_restore().
 */
static inline uint64_t tree_be_quiet(void)
{
	return tree_is_traced ? shim_signals_block() : ~0ull;
}

static inline void open_call(struct shim_node *node, uint64_t frame)
{
	if (UNLIKELY(is_in_doubt(node)))
		node_trust(node);
	node->frame = frame;
	shim_local_add(&node->calls, 1);
	tree_end_own();
	if (tree_mode != COUNTS || tree_is_traced)
		node->start = is_exact(node) || tree_is_traced ? now() :
								 tree_hot.clock;
	if (tree_is_traced)
		path_writer->opened(node);
}

/*
 * Durations of calltree:exact.  A call's duration waits in its extra node for the next
 * call: the counter takes long to read, and work that depends on it would delay the
 * next reading.  The exchange happens while the node is current, so no signal handler
 * can come between with a call of the same node.
 */
static inline uint64_t exchange_last(struct shim_extra_node *extra,
				     uint64_t duration)
{
	uint64_t last = extra->last;

	extra->last = duration;
	return last;
}

/* The slow path counts shorter durations.  On x86-64, two readings of the counter
 * differ by more, except on very slow machines.  Other processors have slower
 * counters. */
#if defined(__x86_64__)
#define SHORTEST_COMMON (1ull << SHIM_SHORT_BUCKETS)
#else
#define SHORTEST_COMMON 1ull
#endif

/* range_low and range_span answer in one comparison: is the duration at least
 * SHORTEST_COMMON, within the shortest and the longest so far, and not too long for the
 * last bucket but one? */
static inline void count_duration(struct shim_extra_node *extra,
				  uint64_t duration)
{
	unsigned bucket;

	if (UNLIKELY(duration - extra->range_low > extra->range_span)) {
		node_widen(extra, duration);
		return;
	}
	bucket = 63u - (unsigned)__builtin_clzll(duration);
	shim_local_add(SHORTEST_COMMON < 1ull << SHIM_SHORT_BUCKETS ?
			       shim_bucket(extra, bucket) :
			       &extra->bucket[bucket - SHIM_SHORT_BUCKETS],
		       1);
}

/* Counts the end of a call.  Its parent is current already, so a signal handler may
 * open the same node meanwhile; @duration was computed before that. */
static inline void count_call(struct shim_node *node, uint64_t duration)
{
	node->frame = 0;
	if (tree_mode == TRACED)
		return;
	shim_local_add(&node->time, duration);
	if (tree_mode == EXACT) {
		struct shim_extra_node *extra = (struct shim_extra_node *)
							node->extra;

		if (extra)
			count_duration(extra, duration);
		else
			node_add_extra(node, duration);
	} else if (tree_mode == COARSE && (node->function & SHIM_NODE_EXACT) &&
		   (node->calls & 31) == 0)
		node_choose_clock(node);
}

static inline void close_call(struct shim_node *node, uint64_t duration,
			      bool is_unwound)
{
	if (tree_is_traced)
		path_writer->closed(node, is_unwound);
	count_call(node, duration);
}

#endif
