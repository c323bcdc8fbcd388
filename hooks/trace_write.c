/*
 * Records off the fast path, and the blocks all of them are in.
 *
 * What is written here takes its place in the block with one instruction, and has a
 * TIME of its own where a handler may have come between, so a handler that
 * comes at any moment writes before or behind it.
 */
#include "calltree.h"

#include <shim/banned.h>

/* The room short records may not begin in. */
#define MARGIN 16

#define HEAD_TIME SHIM_TRACE_HEAD(SHIM_TRACE_TIME, 8)

bool tree_is_traced;

static uint64_t time_now(void)
{
	return now() >> TRACE_SHIFT;
}

static struct tree *my_tree(void)
{
	return tree_hot.shared ? tree_of_task(shim_thread_id()) : tree_hot.tree;
}

static bool is_muted(const struct trace *trace)
{
	return trace->is_paused || trace->is_lost || trace->is_copying ||
	       trace->muted_at;
}

void trace_set_limit(struct trace *trace)
{
	bool is_slow = is_muted(trace) ||
		       __atomic_load_n(&trace_is_off, __ATOMIC_SEQ_CST);

	__atomic_store_n(&trace->limit, is_slow ? 0 : trace->end - MARGIN,
			 __ATOMIC_SEQ_CST);
	/* Who switches it off looks at the limits after he has said so. */
	if (__atomic_load_n(&trace_is_off, __ATOMIC_SEQ_CST))
		__atomic_store_n(&trace->limit, 0, __ATOMIC_SEQ_CST);
}

/* Signals are not blocked: a handler that begins another block sets its limit, and
 * then there is one. */
void trace_unmute(struct trace *trace)
{
	uint64_t end;

	trace->muted_at = NULL;
	trace_fence();
	end = *(volatile uint64_t *)&trace->end;
	shim_local_cas(&trace->limit, NULL, (void *)(end - MARGIN));
	if (is_muted(trace) || __atomic_load_n(&trace_is_off, __ATOMIC_SEQ_CST))
		__atomic_store_n(&trace->limit, 0, __ATOMIC_SEQ_CST);
}

/* --- what is open --- */

/* (Frame 0: it has been ended, and something is about to say so.) */
static bool is_listed(const struct shim_node *node)
{
	return node->frame != 0 && !(node->frame & FRAME_LEFT_OUT);
}

/* The numbers of the calls from @innermost up, outermost first, to @numbers of
 * which there are SHIM_TRACE_STACK_MAX. */
static uint32_t list_open(struct shim_node *innermost, uint32_t *numbers,
			  bool *more)
{
	uint32_t count = 0;

	for (struct shim_node *node = innermost; !is_root(node);
	     node = parent_of(node)) {
		if (!is_listed(node))
			continue;
		if (count == SHIM_TRACE_STACK_MAX) {
			*more = true;
			break;
		}
		numbers[count++] = node_number(node);
	}
	for (uint32_t i = 0; i < count / 2; i++) {
		uint32_t number = numbers[i];

		numbers[i] = numbers[count - 1 - i];
		numbers[count - 1 - i] = number;
	}
	return count;
}

/* A STACK at @at, where there is room for the longest. */
static uint32_t put_stack(char *at, struct shim_node *innermost)
{
	struct shim_trace_stack *stack = (struct shim_trace_stack *)at;
	bool more = false;
	uint32_t count = list_open(innermost, stack->function, &more);
	uint32_t size = (uint32_t)sizeof(*stack) +
			count * (uint32_t)sizeof(stack->function[0]);

	stack->more = more;
	stack->size = (uint16_t)(size / 2);
	__atomic_store_n(&stack->head, SHIM_TRACE_HEAD(SHIM_TRACE_STACK, 0),
			 __ATOMIC_RELEASE);
	return size;
}

/* --- blocks --- */

static bool add_stages(struct trace *trace, char *memory, size_t size)
{
	while (size >= 16384 && trace->stage_count < TRACE_STAGES) {
		uint64_t to_border = size % SHIM_TRACE_BLOCK;
		uint32_t part = to_border ? (uint32_t)to_border :
					    SHIM_TRACE_BLOCK;

		trace->stages[trace->stage_count++] =
			(struct trace_stage){ .begin = memory, .size = part };
		memory += part;
		size -= part;
	}
	return trace->stage_count > 0;
}

/* A second block for those that have begun with one. */
static void add_stage(struct trace *trace, size_t least)
{
	enum shim_lost cause;
	size_t size;
	char *memory = shim_record_grow(trace->record, least, &size, &cause);

	if (!memory)
		return;
	add_stages(trace, memory, size);
	if (trace->next_offset == trace->first_offset) {
		trace->next_offset += size;
		trace->first_offset = trace->next_offset;
	}
}

static uint32_t calls_in(const struct trace_stage *stage)
{
	const char *at = stage->begin + sizeof(struct shim_trace_block);
	const char *end = stage->begin + stage->size;
	uint32_t calls = 0, size;

	while (at + 2 <= end) {
		uint16_t head = *(const trace_u16 *)at;

		if (head & SHIM_TRACE_LEAVE || head == 0) {
			at += 2;
		} else if (head & SHIM_TRACE_ENTER) {
			calls++;
			at += 4;
		} else {
			size = head >> 8;
			if (size == 0 && at + 4 <= end)
				size = *(const trace_u16 *)(at + 2);
			at += size ? 2 * size : 2;
		}
	}
	return calls;
}

/* What is written may be written over later: then this is what is left of it. */
static void count_calls(struct trace *trace, struct trace_stage *stage)
{
	uint64_t *calls = (uint64_t *)((char *)trace->info +
				       SHIM_TRACE_RING_CALLS);

	((struct shim_trace_block *)stage->begin)->calls_before =
		(uint32_t)*calls;
	*calls += calls_in(stage);
}

_Static_assert(sizeof(struct shim_trace_info) +
	       SHIM_TRACE_WAITING_MAX * sizeof(struct shim_trace_waiting) <=
		       SHIM_TRACE_RING_CALLS,
	       "they are in the same page");

static bool write_stage(struct trace *trace, struct trace_stage *stage)
{
	uint64_t ring = trace->info->ring_size;

	if (!stage->is_unwritten)
		return true;
	if (trace->is_closed) {
		trace->cause = SHIM_LOST_FORBIDDEN;
		return false;
	}
	if (ring && trace->next_offset + SHIM_TRACE_BLOCK > ring)
		trace->next_offset = trace->first_offset;
	if (ring && !stage->is_counted)
		count_calls(trace, stage);
	stage->is_counted = true;
	if (!shim_record_write(trace->record, trace->next_offset, stage->begin,
			       stage->size, &trace->cause))
		return false;
	trace->next_offset += SHIM_TRACE_BLOCK;
	stage->is_unwritten = false;
	return true;
}

static void empty(struct trace_stage *stage)
{
	volatile uint64_t *word = (volatile uint64_t *)stage->begin;

	/* The sequence first: there is no block here. */
	for (uint32_t i = 0; i < stage->size / sizeof(*word); i++)
		word[i] = 0;
}

static void begin_block(struct trace *trace, struct trace_stage *stage,
			struct shim_node *innermost)
{
	struct shim_trace_block *block = (struct shim_trace_block *)stage->begin;
	uint64_t time = time_now();

	/* What comes first in it may have waited. */
	if (trace_options.min_clock && trace->sequence)
		time = trace->last;
	stage->is_unwritten = true;
	stage->is_counted = false;
	block->time = time;
	block->tid = trace->tid;
	block->track = trace->track;
	block->thread = trace->thread;
	for (unsigned i = 0; i < sizeof(block->name); i++)
		block->name[i] = trace->name[i];
	trace->last = time;
	trace->cursor = (uint64_t)(block + 1) +
			put_stack((char *)(block + 1), innermost);
	trace->end = (uint64_t)stage->begin + stage->size;
	trace_set_limit(trace);
	__atomic_store_n(&block->sequence, ++trace->sequence, __ATOMIC_RELEASE);
	trace->info->blocks = trace->sequence;
}

/* @innermost is what the last records say is open. */
static bool next_block(struct trace *trace, struct shim_node *innermost)
{
	struct trace_stage *stage;

	if (trace->stage_count == 1 && trace->sequence > 0)
		add_stage(trace, SHIM_TRACE_BLOCK);
	trace->stage = (trace->stage + 1) % trace->stage_count;
	stage = &trace->stages[trace->stage];
	if (!write_stage(trace, stage))
		return false;
	if (*(uint64_t *)stage->begin)
		empty(stage);
	begin_block(trace, stage, innermost);
	return true;
}

/* --- when calls cannot be recorded --- */

static void count_lost(struct trace *trace)
{
	shim_local_add(&trace->info->lost[trace->cause], 1);
	trace->lost_calls++;
}

/* Asking costs system calls: not for every call we lose. */
static void begin_loss(struct trace *trace)
{
	trace->is_lost = true;
	trace->retry_clock = now() + 20000 * tree_long_clock;
	trace_set_limit(trace);
}

/* --- room for a record --- */

/* It may have done it itself already, and may do it again.  If something else has
 * been written since it looked, it will look again. */
static void settle_record(struct trace *trace)
{
	uint64_t at = *(volatile uint64_t *)&trace->busy;
	uint64_t cursor = *(volatile uint64_t *)&trace->cursor;
	uint32_t word = trace->word;
	uint64_t size = word & SHIM_TRACE_LEAVE ? 2 : 4;

	if (!at)
		return;
	if (cursor == at || cursor == at + size) {
		if (tree_hot.trace == trace && !tree_hot.shared)
			tree_hot.current = trace->becomes;
		trace->settled = at;
		trace_fence();
	}
	if (cursor == at) {
		if (size == 2)
			*(volatile trace_u16 *)at = (uint16_t)word;
		else
			*(volatile trace_u32 *)at = word;
		shim_local_add(&trace->cursor, size);
		trace_fence();
	}
	*(volatile uint64_t *)&trace->busy = 0;
}

void trace_settle(struct trace *trace)
{
	struct shim_node *held = *(struct shim_node *volatile *)&trace->held;

	settle_record(trace);
	if (!held)
		return;
	if (tree_hot.trace == trace && !tree_hot.shared)
		tree_hot.current = held;
	trace_release(trace);
}

static char *take(struct trace *trace, size_t size, struct shim_node *innermost)
{
	uint64_t at, end, signals;
	bool done;

	if (trace->is_lost)
		return NULL;
	for (;;) {
		trace_settle(trace);
		end = *(volatile uint64_t *)&trace->end;
		at = shim_fetch_add(&trace->cursor, size);
		if (at + size <= end &&
		    end == *(volatile uint64_t *)&trace->end)
			return (char *)at;
		signals = shim_signals_block();
		done = trace->end != end || next_block(trace, innermost);
		if (!done)
			begin_loss(trace);
		shim_signals_restore(signals);
		if (!done)
			return NULL;
	}
}

static void put_word(char *at, uint64_t word)
{
	*(volatile trace_u64 *)at = word;
}

static void put_time(struct trace *trace, char *at, uint64_t time)
{
	put_word(at, HEAD_TIME | time << 16);
	trace->last = time;
}

/* A TIME and room behind it. */
static char *take_timed(struct trace *trace, size_t size,
			struct shim_node *innermost)
{
	char *at = take(trace, 8 + size, innermost);

	if (!at)
		return NULL;
	put_time(trace, at, time_now());
	return at + 8;
}

static void put_head(char *at, enum shim_trace_kind kind, size_t size)
{
	__atomic_store_n((trace_u16 *)at, SHIM_TRACE_HEAD(kind, size),
			 __ATOMIC_RELEASE);
}

/* --- tracks --- */

static struct stack *own_stack(const struct tree *tree)
{
	struct stack *stack = tree->stack;

	while (stack->is_signal && stack->interrupted)
		stack = stack->interrupted;
	return stack;
}

/* Of what is open, what nobody recorded is from now on as good as recorded. */
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

	/* If a block begins with it, @innermost is what it says is open there. */
	trace->track = track;
	at = take_timed(trace, 8, innermost);
	if (at)
		put_word(at, SHIM_TRACE_HEAD(SHIM_TRACE_TRACK, 8) |
			     (uint64_t)track << 16);
}

static void say_stack(struct trace *trace, struct shim_node *innermost)
{
	/* The longest one: what is not used stays a hole. */
	char *at = take_timed(trace, sizeof(struct shim_trace_stack) +
					     SHIM_TRACE_STACK_MAX * 4,
			      innermost);

	if (at)
		put_stack(at, innermost);
}

/* The records that follow are of @tree's stack in use. */
static void find_track(struct tree *tree, struct shim_node *innermost)
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
		say_stack(trace, innermost);
		stack->resumes = trace->resumes;
	}
}

void trace_switch_track(struct tree *tree)
{
	if (!is_muted(tree->trace))
		find_track(tree, tree->current);
}

/* --- off and on --- */

static void pause_trace(struct trace *trace, struct shim_node *innermost)
{
	char *at = take_timed(trace, 2, innermost);

	if (at)
		put_head(at, SHIM_TRACE_PAUSE, 2);
	trace->is_paused = true;
	trace_set_limit(trace);
}

static void say_loss(struct trace *trace, struct shim_node *innermost)
{
	char *at = take_timed(trace, sizeof(struct shim_trace_lost), innermost);
	uint64_t calls = trace->lost_calls;

	if (!at)
		return;
	put_word(at, SHIM_TRACE_HEAD(SHIM_TRACE_LOST, 8) |
		     (uint64_t)trace->cause << 16 |
		     (calls < UINT32_MAX ? calls : UINT32_MAX) << 32);
	trace->lost_calls = 0;
}

/* A lost block is tried again, now and then. */
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
	done = next_block(trace, innermost);
	if (!done)
		begin_loss(trace);
	shim_signals_restore(signals);
	if (done)
		say_loss(trace, innermost);
	return done;
}

/* Whether calls are recorded, now that @innermost is open. */
static bool is_recording(struct tree *tree, struct shim_node *innermost)
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
		find_track(tree, innermost);
		pause_trace(trace, innermost);
	}
	if (is_off)
		return false;
	if (trace->is_paused) {
		trace->is_paused = false;
		trace->resumes++;
		trace_set_limit(trace);
	}
	find_track(tree, innermost);
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
	say_stack(trace, tree->current);
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
	at = take(trace, 8 + size, parent_of(node));
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
 * With a minimum, an enter waits in its node until the call has taken that long, or
 * something else is written in it.  So all that wait are further in than those that
 * do not, and nothing has been written since they began: they are still in order.
 */

/* Of @count calls from @node up, the outermost first. */
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

/* Signals blocked. */
static void say_waiting(struct trace *trace, struct shim_node *innermost)
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
	find_track(tree, innermost);
	say_waiting(trace, innermost);
	shim_signals_restore(signals);
}

static void begin_waiting(struct trace *trace, struct shim_node *node)
{
	if (trace_has_waited(parent_of(node), node->start))
		say_waiting(trace, parent_of(node));
	node->frame |= FRAME_LEFT_OUT | FRAME_WAITS;
	trace_begin_waiting(trace, node_number(node), node->start);
}

/* Whether the call of @node, which ends, is not in the file. */
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
	find_track(tree, node);
	say_waiting(trace, node);
	return node->frame & FRAME_LEFT_OUT;
}

static bool is_left_out(struct tree *tree, struct shim_node *node)
{
	struct trace *trace = tree->trace;

	if (node->hits == TRACE_LEFT_OUT || trace->muted_at) {
		shim_local_add(&trace->info->filtered, 1);
		return true;
	}
	if (!is_recording(tree, parent_of(node)))
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
	struct tree *tree = my_tree();
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
	char *at = take_timed(trace, size, node);

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
	struct tree *tree = my_tree();
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
	/* Of calls that end now, what says what is open then will tell. */
	if (trace->is_paused || trace->is_lost)
		return;
	trace->info->waiting = 0;
	/* Where a new block begins, this call is open still. */
	find_track(tree, node);
	put_leave(trace, node, is_unwound);
}

void trace_lose(struct tree *tree, enum shim_lost cause)
{
	struct trace *trace = tree->trace;

	if (trace)
		shim_local_add(&trace->info->lost[cause], 1);
}

/* --- threads --- */

struct trace *trace_make(enum shim_lost *cause)
{
	struct shim_record *record;
	struct trace *trace;
	void *memory;
	size_t size;

	record = shim_record_open("trace", &memory, &size, cause);
	if (!record)
		return NULL;
	*cause = SHIM_LOST_MEMORY;
	trace = shim_memory_map(sizeof(*trace));
	if (!trace)
		return NULL;
	trace->record = record;
	trace->info = memory;
	trace->info->time_shift = TRACE_SHIFT;
	trace->info->min_duration = trace_options.min_clock;
	trace->info->ring_size = trace_options.ring_size;
	trace->first_offset = trace->next_offset = size + 4096;
	add_stages(trace, (char *)memory + 4096, size - 4096);
	trace->stage = trace->stage_count - 1;	/* the first comes next */
	trace->info->block_size = SHIM_TRACE_BLOCK;
	return trace;
}

static void put_thread(struct trace *trace, enum shim_trace_kind kind,
		       struct shim_node *innermost)
{
	struct shim_trace_thread *thread;
	char *at = take_timed(trace, sizeof(*thread), innermost);

	if (!at)
		return;
	put_head(at, SHIM_TRACE_UNFINISHED, sizeof(*thread));
	thread = (struct shim_trace_thread *)at;
	__builtin_memcpy(at + 4, &trace->tid, sizeof(trace->tid));
	for (unsigned i = 0; i < sizeof(thread->name); i++)
		at[8 + i] = trace->name[i];
	put_head(at, kind, sizeof(*thread));
}

void trace_thread_begins(struct tree *tree)
{
	struct trace *trace = tree->trace;

	if (!trace)
		return;
	trace->tid = tree->tid;
	trace->thread++;
	trace->track = 0;
	trace->muted_at = NULL;
	trace->is_ended = false;
	trace->busy = 0;
	trace->held = NULL;
	trace->info->waiting = 0;
	shim_thread_name(trace->name);
	tree->main_stack.resumes = trace->resumes;
	if (trace->sequence == 0) {
		if (!next_block(trace, tree->current))
			begin_loss(trace);
	} else if (!trace->is_lost) {
		put_thread(trace, SHIM_TRACE_THREAD, tree->current);
	}
	trace_set_limit(trace);
}

void trace_thread_ended(struct tree *tree)
{
	struct trace *trace = tree->trace;
	char *at;

	if (!trace || trace->is_lost || trace->is_ended)
		return;
	trace->is_ended = true;
	at = take_timed(trace, 2, tree->current);
	if (at)
		put_head(at, SHIM_TRACE_ENDED, 2);
}

void trace_thread_named(struct tree *tree, const char *name)
{
	struct trace *trace = tree->trace;
	unsigned i = 0;

	if (!trace)
		return;
	for (; i < sizeof(trace->name) - 1 && name[i]; i++)
		trace->name[i] = name[i];
	for (; i < sizeof(trace->name); i++)
		trace->name[i] = '\0';
	if (!trace->is_lost)
		put_thread(trace, SHIM_TRACE_NAME, tree->current);
}

void trace_close(struct tree *tree)
{
	struct trace *trace = tree->trace;

	if (!trace || trace->is_closed)
		return;
	add_stage(trace, 1u << 20);
	trace->is_closed = true;
}

/* --- what the program says --- */

static struct trace *trace_for_text(struct tree **tree)
{
	struct trace *trace;

	*tree = my_tree();
	if (!*tree)
		*tree = tree_get((uintptr_t)__builtin_frame_address(0));
	trace = *tree ? (*tree)->trace : NULL;
	if (!trace || trace->is_lost || trace->is_paused ||
	    __atomic_load_n(&trace_is_off, __ATOMIC_RELAXED))
		return NULL;
	trace_say_waiting(*tree, tree_collect(*tree));
	find_track(*tree, (*tree)->current);
	return trace->is_lost ? NULL : trace;
}

static void put_text(char *at, const char *text, size_t size, size_t room)
{
	for (size_t i = 0; i < room; i++)
		at[i] = i < size ? text[i] : '\0';
}

void trace_text(enum shim_trace_kind kind, const char *text, size_t size)
{
	struct tree *tree;
	struct trace *trace = trace_for_text(&tree);
	size_t whole;
	char *at;

	if (!trace)
		return;
	if (size > SHIM_TRACE_TEXT)
		size = SHIM_TRACE_TEXT;
	whole = (size + 2 + 1) & ~(size_t)1;
	at = take_timed(trace, whole, tree->current);
	if (!at)
		return;
	put_head(at, SHIM_TRACE_UNFINISHED, whole);
	put_text(at + 2, text, size, whole - 2);
	put_head(at, kind, whole);
}

/* Where it has no place behind its call's enter, a handler may have come between:
 * readers look whose it is. */
void trace_put_values(const struct trace_record *record)
{
	size_t whole = trace_record_size(record);
	char *at = record->place;
	struct tree *tree;
	struct trace *trace;

	if (UNLIKELY(!at)) {
		trace = trace_for_text(&tree);
		at = trace ? take(trace, whole, tree->current) : NULL;
	}
	if (UNLIKELY(!at))
		return;
	put_head(at, SHIM_TRACE_UNFINISHED, whole);
	put_text(at + 2, (const char *)record->bytes, record->size, whole - 2);
	put_head(at, record->kind, whole);
}

void trace_counter(const char *name, uint64_t value)
{
	struct tree *tree;
	struct trace *trace = trace_for_text(&tree);
	size_t size = 0, whole;
	char *at;

	if (!trace)
		return;
	while (size < SHIM_TRACE_TEXT && name[size])
		size++;
	whole = (sizeof(struct shim_trace_counter) + size + 1) & ~(size_t)1;
	at = take_timed(trace, whole, tree->current);
	if (!at)
		return;
	put_head(at, SHIM_TRACE_UNFINISHED, whole);
	__builtin_memcpy(at + 8, &value, sizeof(value));
	put_text(at + 16, name, size, whole - 16);
	put_head(at, SHIM_TRACE_COUNTER, whole);
}
