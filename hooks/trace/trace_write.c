/* Writes records off the fast path: tracks, pauses, calls. */
#include "trace/trace_blocks.h"

#include <shim/banned.h>

/* --- tracks --- */

static struct stack *own_stack(const struct tree *tree)
{
	struct stack *stack = tree->stack;

	while (stack->is_signal && stack->interrupted)
		stack = stack->interrupted;
	return stack;
}

/* From now on, open calls that were not recorded count as recorded. */
static void list_all(struct trace *trace, struct shim_node *innermost)
{
	for (struct shim_node *node = innermost; !is_root(node);
	     node = parent_of(node)) {
		if (frame_waits(node->frame))
			node->frame = frame_at(node);
		else if (node->hits != TRACE_LEFT_OUT)
			node->frame &= ~(uint64_t)FRAME_LEFT_OUT;
	}
	trace->info->waiting = 0;
}

static void put_track(struct trace *trace, uint32_t track,
		      struct shim_node *innermost)
{
	char *at;

	/* If a block begins here, its STACK lists @innermost. */
	trace->track = track;
	at = trace_take_timed(trace, 8, innermost);
	if (at)
		put_word(at, SHIM_TRACE_HEAD(SHIM_TRACE_TRACK, 8) |
				     (uint64_t)track << 16);
}

static void write_stack(struct trace *trace, struct shim_node *innermost)
{
	/* Reserves the longest size; the unused part stays a hole. */
	char *at = trace_take_timed(trace,
				    sizeof(struct shim_trace_stack) +
					    SHIM_TRACE_STACK_MAX * 4,
				    innermost);

	if (at)
		trace_put_stack(at, innermost);
}

/* Makes the next records belong to @tree's stack in use. */
void trace_find_track(struct tree *tree, struct shim_node *innermost)
{
	struct stack *stack = own_stack(tree);
	struct trace *trace = tree->trace;

	if (LIKELY(trace->track == stack->track &&
		   stack->resumes == trace->resumes))
		return;
	if (trace->track != stack->track)
		put_track(trace, stack->track, innermost);
	if (stack->resumes != trace->resumes) {
		list_all(trace, innermost);
		write_stack(trace, innermost);
		stack->resumes = trace->resumes;
	}
}

void trace_switch_track(struct tree *tree)
{
	if (!is_muted(tree->trace))
		trace_find_track(tree, tree->current);
}

/* --- off and on --- */

static void pause_trace(struct trace *trace, struct shim_node *innermost)
{
	char *at = trace_take_timed(trace, 2, innermost);

	if (at)
		put_head(at, SHIM_TRACE_PAUSE, 2);
	trace->is_paused = true;
	trace_set_limit(trace);
}

static void write_loss(struct trace *trace, struct shim_node *innermost)
{
	char *at = trace_take_timed(trace, sizeof(struct shim_trace_lost),
				    innermost);
	uint64_t calls = trace->lost_calls;

	if (!at)
		return;
	put_word(at, SHIM_TRACE_HEAD(SHIM_TRACE_LOST, 8) |
			     (uint64_t)trace->cause << 16 |
			     (calls < UINT32_MAX ? calls : UINT32_MAX) << 32);
	trace->lost_calls = 0;
}

/* Tries again to get a block, at intervals. */
static bool end_loss(struct trace *trace, struct shim_node *innermost)
{
	uint64_t signals;
	bool done;

	if (trace->is_closed || now() < trace->retry_clock)
		return false;
	signals = shim_signals_block();
	trace->is_lost = false;
	list_all(trace, innermost);
	trace->last = time_now();
	trace->stage = (trace->stage + trace->stage_count - 1) %
		       trace->stage_count;
	done = trace_next_block(trace, innermost);
	if (!done)
		trace_begin_loss(trace);
	shim_signals_restore(signals);
	if (done)
		write_loss(trace, innermost);
	return done;
}

/* Whether calls are recorded while @innermost is open. */
bool trace_is_recording(struct tree *tree, struct shim_node *innermost)
{
	struct trace *trace = tree->trace;
	bool is_off = __atomic_load_n(&trace_is_off, __ATOMIC_SEQ_CST);

	if (trace->is_lost) {
		if (!end_loss(trace, innermost)) {
			if (!is_off)
				count_lost(trace);
			return false;
		}
		trace->resumes++;
		own_stack(tree)->resumes = trace->resumes;
	}
	if (is_off && !trace->is_paused) {
		trace_find_track(tree, innermost);
		pause_trace(trace, innermost);
	}
	if (is_off)
		return false;
	if (trace->is_paused) {
		trace->is_paused = false;
		trace->resumes++;
		trace_set_limit(trace);
	}
	trace_find_track(tree, innermost);
	return !trace->is_lost;
}

void trace_announce(struct tree *tree, bool is_resumed)
{
	struct trace *trace = tree->trace;

	trace->is_copying = false;
	trace->resumes += is_resumed;
	trace_set_limit(trace);
	list_all(trace, tree->current);
	own_stack(tree)->resumes = trace->resumes;
	write_stack(trace, tree->current);
}

/* --- calls --- */

static void put_enter(struct trace *trace, struct shim_node *node)
{
	uint32_t number = node_number(node), size = 4;
	bool waited = frame_waits(node->frame);
	uint64_t time;
	char *at;

	if (number >= SHIM_TRACE_FUNCTIONS)
		size = 8;
	at = trace_take(trace, 8 + size, parent_of(node));
	node->frame = frame_at(node) | (at ? 0 : FRAME_LEFT_OUT);
	if (!at) {
		count_lost(trace);
		return;
	}
	put_time(trace, at, waited ? node->start >> TRACE_SHIFT : time_now());
	at += 8;
	time = trace->last & TRACE_TIME_MASK;
	if (size == 4)
		*(volatile trace_u32 *)at = trace_enter_word(time, number);
	else
		put_word(at, SHIM_TRACE_HEAD(SHIM_TRACE_ENTER_LONG, 8) |
				     (uint64_t)number << 16 | time << 48);
}

/*
 * With a minimum duration, an enter waits in its node until the call has taken that
 * long, or until another record is written during the call.  So all waiting calls are
 * inside all recorded calls.  No record was written since they began, so their order is
 * right.
 */

/* Writes the enters of @count calls from @node up, outermost first. */
static void put_waiting(struct trace *trace, struct shim_node *node,
			uint64_t count)
{
	struct shim_node *outer = node;

	if (count == 1) {
		if (frame_waits(node->frame))
			put_enter(trace, node);
		return;
	}
	for (uint64_t i = 0; i < count / 2; i++)
		outer = parent_of(outer);
	put_waiting(trace, outer, count - count / 2);
	put_waiting(trace, node, count / 2);
}

/* Writes the waiting enters.  Signals must be blocked. */
static void write_waiting(struct trace *trace, struct shim_node *innermost)
{
	struct shim_node *node = innermost;
	uint64_t count = 0;

	for (; !is_root(node) && !is_listed(node); node = parent_of(node))
		count++;
	if (count)
		put_waiting(trace, innermost, count);
	trace->info->waiting = 0;
}

void trace_say_waiting(struct tree *tree, struct shim_node *innermost)
{
	struct trace *trace = tree->trace;
	uint64_t signals;

	if (!trace_options.min_clock || !trace || trace->is_paused ||
	    trace->is_lost || !(innermost->frame & FRAME_LEFT_OUT))
		return;
	signals = shim_signals_block();
	trace_find_track(tree, innermost);
	write_waiting(trace, innermost);
	shim_signals_restore(signals);
}

static void begin_waiting(struct trace *trace, struct shim_node *node)
{
	if (trace_has_waited(parent_of(node), node->start))
		write_waiting(trace, parent_of(node));
	node->frame |= FRAME_LEFT_OUT | FRAME_WAITS;
	trace_begin_waiting(trace, node_number(node), node->start);
}

/* Whether the call of @node, which ends now, is too short to be recorded. */
static bool is_too_short(struct tree *tree, struct shim_node *node)
{
	struct trace *trace = tree->trace;

	trace_end_waiting(trace, node->start);
	if (!trace_has_waited(node, now())) {
		shim_local_add(&trace->info->too_short, 1);
		return true;
	}
	if (trace->is_lost)
		count_lost(trace);
	if (trace->is_paused || trace->is_lost)
		return true;
	trace_find_track(tree, node);
	write_waiting(trace, node);
	return node->frame & FRAME_LEFT_OUT;
}

static bool is_left_out(struct tree *tree, struct shim_node *node)
{
	struct trace *trace = tree->trace;

	if (node->hits == TRACE_LEFT_OUT || trace->muted_at) {
		shim_local_add(&trace->info->filtered, 1);
		return true;
	}
	if (!trace_is_recording(tree, parent_of(node)))
		return true;
	if (trace_skips(address_of(node))) {
		trace->muted_at = node;
		trace_set_limit(trace);
		shim_local_add(&trace->info->filtered, 1);
		return true;
	}
	return false;
}

void trace_opened(struct shim_node *node)
{
	struct tree *tree = tree_own();
	struct trace *trace = tree ? tree->trace : NULL;

	if (!trace || trace->is_copying)
		return;
	if (is_left_out(tree, node))
		node->frame |= FRAME_LEFT_OUT;
	else if (trace_options.min_clock)
		begin_waiting(trace, node);
	else
		put_enter(trace, node);
}

static void put_leave(struct trace *trace, struct shim_node *node,
		      bool is_unwound)
{
	uint32_t size = is_unwound ? 4 : 2;
	char *at = trace_take_timed(trace, size, node);

	if (!at)
		return;
	if (is_unwound) {
		put_head(at, SHIM_TRACE_UNWOUND, 2);
		at += 2;
	}
	*(volatile trace_u16 *)at = (uint16_t)trace_leave_word(trace->last);
}

void trace_closed(struct shim_node *node, bool is_unwound)
{
	struct tree *tree = tree_own();
	struct trace *trace = tree ? tree->trace : NULL;

	if (!trace || trace->is_copying)
		return;
	if (frame_waits(node->frame) && is_too_short(tree, node))
		return;
	if (node->frame & FRAME_LEFT_OUT) {
		if (trace->muted_at == node)
			trace_unmute(trace);
		return;
	}
	/* The next list of open calls lacks the calls that end now. */
	if (trace->is_paused || trace->is_lost)
		return;
	trace->info->waiting = 0;
	/* If a new block begins here, this call is still open. */
	trace_find_track(tree, node);
	put_leave(trace, node, is_unwound);
}

void trace_lose(struct tree *tree, enum shim_lost cause)
{
	struct trace *trace = tree->trace;

	if (trace)
		shim_local_add(&trace->info->lost[cause], 1);
}
