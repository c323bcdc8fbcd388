/*
 * Opens and closes calls that the fast path of a trace could not, if that needs no
 * system call.  Each step is announced before it is done, as on the fast path, so that
 * a signal handler may come at any moment (trace.h).
 */
#include "trace/trace.h"

#include <shim/banned.h>

/* Opens a call with a short record; @arguments: a record for the call, or NULL. */
static bool write_short(struct shim_node *node, uint64_t frame, uint64_t clock,
			struct trace_record *arguments)
{
	uint64_t time = clock >> TRACE_SHIFT;
	uint32_t word = trace_enter_word(time, node->hits);
	struct trace *trace = tree_hot.trace;
	char *at;

	if (arguments && !trace_has_room(trace, arguments))
		return false;
	node->frame = frame;
	if (!trace_reserve(trace, time, word, node, &at)) {
		node->frame = 0;
		return false;
	}
	tree_hot.current = node;
	shim_local_add(&node->calls, 1);
	node->start = clock;
	if (arguments)
		trace_put_before(trace, at, time, word, arguments);
	else
		trace_put(trace, at, time, word);
	return true;
}

static bool open_short(struct shim_node *node, uint64_t frame, uint64_t clock)
{
	return !(node->function & SHIM_NODE_EXACT) &&
	       write_short(node, frame, clock, NULL);
}

bool trace_open_asked(struct shim_node *node, uint64_t frame, void *arguments)
{
	return !node->group && node->hits < SHIM_TRACE_FUNCTIONS &&
	       !trace_options.min_clock &&
	       !trace_is_counted(address_of(node)) &&
	       write_short(node, frame, shim_clock_read(), arguments);
}

/* Whether the call is lost, because memory is missing and the next try is not due.
 * Counts the call. */
static bool is_lost(struct trace *trace, const struct shim_node *node,
		    uint64_t clock)
{
	if (!trace->is_lost || clock >= trace->retry_clock ||
	    trace->is_copying || trace_is_off || trace->muted_at ||
	    node->hits == TRACE_LEFT_OUT)
		return false;
	shim_local_add(&trace->info->lost[trace->cause], 1);
	shim_local_add(&trace->lost_calls, 1);
	return true;
}

/* A call that is left out has no record.  It begins and ends as without a trace. */
static bool open_left_out(struct shim_node *node, uint64_t frame,
			  uint64_t clock)
{
	struct trace *trace = tree_hot.trace;

	if (!trace || is_in_doubt(node) ||
	    (!is_lost(trace, node, clock) && !trace_is_silent(trace, node)))
		return false;
	tree_hot.current = node;
	node->frame = frame | FRAME_LEFT_OUT;
	shim_local_add(&node->calls, 1);
	node->start = clock;
	return true;
}

/* A call that is not the N-th has no record either, and neither have its callees.  (A
 * signal handler that comes before or after the muting is recorded.) */
static bool open_skipped(struct shim_node *node, uint64_t frame, uint64_t clock)
{
	struct trace *trace = tree_hot.trace;

	if (!trace || is_in_doubt(node) || node->group ||
	    trace->cursor >= trace->limit ||
	    !trace_skips_surely(address_of(node)))
		return false;
	tree_hot.current = node;
	node->frame = frame | FRAME_LEFT_OUT;
	shim_local_add(&node->calls, 1);
	node->start = clock;
	shim_local_add(&trace->info->filtered, 1);
	trace->muted_at = node;
	trace_set_limit(trace);
	return true;
}

/* With a minimum duration, a call has no record before it has taken that long.  A
 * signal handler that comes between may itself take that long.  Then it writes this
 * call's enter. */
static bool open_waiting(struct shim_node *node, uint64_t frame, uint64_t clock)
{
	const struct shim_node *parent = parent_of(node);
	struct trace *trace = tree_hot.trace;

	if (!trace_options.min_clock || !trace || is_in_doubt(node) ||
	    node->group || trace->cursor >= trace->limit ||
	    trace_is_counted(address_of(node)) ||
	    trace_has_waited(parent, clock))
		return false;
	node->start = clock;
	node->frame = frame | FRAME_LEFT_OUT | FRAME_WAITS;
	trace_begin_waiting(trace, node->hits, clock);
	trace_hold(trace, node);
	/* The signal handler made a call of this same node, which has ended. */
	if (UNLIKELY(frame_at(node) != frame)) {
		trace_release(trace);
		trace_end_waiting(trace, clock);
		return false;
	}
	tree_hot.current = node;
	shim_local_add(&node->calls, 1);
	trace_release(trace);
	return true;
}

static bool close_waiting(struct shim_node *node, uint64_t clock,
			  uint64_t duration)
{
	struct trace *trace = tree_hot.trace;

	if (trace_has_waited(node, clock))
		return false;
	trace_hold(trace, parent_of(node));
	if (UNLIKELY(!frame_waits(node->frame))) {
		trace_release(trace);
		return false;
	}
	tree_hot.current = parent_of(node);
	trace_end_waiting(trace, node->start);
	count_call(node, duration);
	shim_local_add(&trace->info->too_short, 1);
	trace_release(trace);
	return true;
}

static bool close_left_out(struct shim_node *node, uint64_t clock)
{
	uint64_t duration = tree_mode == COUNTS ? 0 : clock - node->start;
	struct trace *trace = tree_hot.trace;

	if (!(node->frame & FRAME_LEFT_OUT) || !trace || trace->is_copying)
		return false;
	if (frame_waits(node->frame))
		return close_waiting(node, clock, duration);
	if (trace->muted_at == node)
		trace_unmute(trace);
	tree_hot.current = parent_of(node);
	count_call(node, duration);
	return true;
}

static bool close_short(struct shim_node *node, uint64_t clock)
{
	uint64_t duration = tree_mode == COUNTS ? 0 : clock - node->start;
	uint64_t time = clock >> TRACE_SHIFT;
	uint32_t word = trace_leave_word(time);
	char *at;

	if (node->frame & FRAME_LEFT_OUT ||
	    !trace_reserve(tree_hot.trace, time, word, parent_of(node), &at))
		return false;
	tree_hot.current = parent_of(node);
	count_call(node, duration);
	if (trace_options.min_clock)
		tree_hot.trace->info->waiting = 0;
	trace_put(tree_hot.trace, at, time, word);
	return true;
}

bool trace_open(struct shim_node *node, uint64_t frame, uint64_t clock)
{
	return open_short(node, frame, clock) ||
	       open_left_out(node, frame, clock) ||
	       open_skipped(node, frame, clock) ||
	       open_waiting(node, frame, clock);
}

bool trace_close_short(struct shim_node *node, uint64_t clock)
{
	return close_short(node, clock) || close_left_out(node, clock);
}
