/*
 * Manages blocks of records, and their memory.
 *
 * A record off the fast path reserves its bytes in the block with one instruction.  A
 * TIME record comes before it if a signal handler may have come between.  So a handler
 * that comes at any moment writes before or after the record.
 */
#include "trace/trace_blocks.h"

#include <shim/banned.h>

/* Short records begin at least this many bytes before the end of a block. */
#define MARGIN 16

void trace_set_limit(struct trace *trace)
{
	bool is_slow = is_muted(trace) ||
		       __atomic_load_n(&trace_is_off, __ATOMIC_SEQ_CST);

	__atomic_store_n(&trace->limit, is_slow ? 0 : trace->end - MARGIN,
			 __ATOMIC_SEQ_CST);
	/* trace_switch() sets trace_is_off before it sets the limits. */
	if (__atomic_load_n(&trace_is_off, __ATOMIC_SEQ_CST))
		__atomic_store_n(&trace->limit, 0, __ATOMIC_SEQ_CST);
}

/* Signals are not blocked.  If a signal handler begins another block, its limit
 * stays. */
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

/* --- open calls --- */

/* Stores the numbers of the calls from @innermost up, outermost first, in @stack, which
 * has room for SHIM_TRACE_STACK_MAX.  Returns their count. */
static uint32_t list_open(struct shim_node *innermost,
			  struct shim_trace_stack *stack)
{
	uint32_t count = 0;

	stack->more = 0;
	for (struct shim_node *node = innermost; !is_root(node);
	     node = parent_of(node)) {
		if (!is_listed(node))
			continue;
		if (count == SHIM_TRACE_STACK_MAX) {
			stack->more = 1;
			break;
		}
		stack->function[count++] = node_number(node);
	}
	for (uint32_t i = 0; i < count / 2; i++) {
		uint32_t number = stack->function[i];

		stack->function[i] = stack->function[count - 1 - i];
		stack->function[count - 1 - i] = number;
	}
	return count;
}

/* Writes a STACK at @at, which has room for the longest. */
uint32_t trace_put_stack(char *at, struct shim_node *innermost)
{
	struct shim_trace_stack *stack = (struct shim_trace_stack *)at;
	uint32_t count = list_open(innermost, stack);
	uint32_t size = (uint32_t)sizeof(*stack) +
			count * (uint32_t)sizeof(stack->function[0]);

	stack->size = (uint16_t)(size / 2);
	__atomic_store_n(&stack->head, SHIM_TRACE_HEAD(SHIM_TRACE_STACK, 0),
			 __ATOMIC_RELEASE);
	return size;
}

/* --- blocks --- */

bool trace_add_stages(struct trace *trace, char *memory, size_t size)
{
	while (size >= 16384 && trace->stage_count < TRACE_STAGES) {
		uint64_t to_border = size % SHIM_TRACE_BLOCK;
		uint32_t part = to_border ? (uint32_t)to_border :
					    SHIM_TRACE_BLOCK;

		trace->stages[trace->stage_count++] = (struct trace_stage){
			.begin = memory, .size = part
		};
		memory += part;
		size -= part;
	}
	return trace->stage_count > 0;
}

/* Adds a second block for traces that began with one. */
void trace_add_stage(struct trace *trace, size_t least)
{
	enum shim_lost cause;
	size_t size;
	char *memory = shim_record_grow(trace->record, least, &size, &cause);

	if (!memory)
		return;
	trace_add_stages(trace, memory, size);
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

/* A block in the ring may be overwritten later; then only its counts remain. */
static void count_calls(struct trace *trace, struct trace_stage *stage)
{
	uint64_t *calls = (uint64_t *)((char *)trace->info +
				       SHIM_TRACE_RING_CALLS);

	((struct shim_trace_block *)stage->begin)->calls_before =
		(uint32_t)*calls;
	*calls += calls_in(stage);
}

_Static_assert(sizeof(struct shim_trace_info) +
			       SHIM_TRACE_WAITING_MAX *
				       sizeof(struct shim_trace_waiting) <=
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

static void clear_stage(struct trace_stage *stage)
{
	volatile uint64_t *word = (volatile uint64_t *)stage->begin;

	/* The sequence is cleared first, because a 0 there means that the block is
	 * unused. */
	for (uint32_t i = 0; i < stage->size / sizeof(*word); i++)
		word[i] = 0;
}

static void begin_block(struct trace *trace, struct trace_stage *stage,
			struct shim_node *innermost)
{
	struct shim_trace_block *block = (struct shim_trace_block *)
						 stage->begin;
	uint64_t time = time_now();

	/* The first record of the block may have waited. */
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
			trace_put_stack((char *)(block + 1), innermost);
	trace->end = (uint64_t)stage->begin + stage->size;
	trace_set_limit(trace);
	__atomic_store_n(&block->sequence, ++trace->sequence, __ATOMIC_RELEASE);
	trace->info->blocks = trace->sequence;
}

/* @innermost is open by the last records. */
bool trace_next_block(struct trace *trace, struct shim_node *innermost)
{
	struct trace_stage *stage;

	if (trace->stage_count == 1 && trace->sequence > 0)
		trace_add_stage(trace, SHIM_TRACE_BLOCK);
	trace->stage = (trace->stage + 1) % trace->stage_count;
	stage = &trace->stages[trace->stage];
	if (!write_stage(trace, stage))
		return false;
	if (*(uint64_t *)stage->begin)
		clear_stage(stage);
	begin_block(trace, stage, innermost);
	return true;
}

/* --- when calls cannot be recorded --- */

/* A try makes system calls, so lost calls try only at intervals. */
void trace_begin_loss(struct trace *trace)
{
	trace->is_lost = true;
	trace->retry_clock = now() + 20000 * tree_long_clock;
	trace_set_limit(trace);
}

/* --- room for a record --- */

/* The interrupted code may have done the step already, and may repeat it.  If a handler
 * has written since that code read the cursor, the code reads the cursor again. */
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

bool trace_settle(struct trace *trace)
{
	struct shim_node *held = *(struct shim_node *volatile *)&trace->held;

	if (LIKELY(!trace->busy && !held))
		return false;
	settle_record(trace);
	if (!held)
		return true;
	if (tree_hot.trace == trace && !tree_hot.shared)
		tree_hot.current = held;
	trace_release(trace);
	return true;
}

char *trace_take(struct trace *trace, size_t size, struct shim_node *innermost)
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
		done = trace->end != end || trace_next_block(trace, innermost);
		if (!done)
			trace_begin_loss(trace);
		shim_signals_restore(signals);
		if (!done)
			return NULL;
	}
}

/* Writes a TIME record, and reserves @size bytes after it. */
char *trace_take_timed(struct trace *trace, size_t size,
		       struct shim_node *innermost)
{
	char *at = trace_take(trace, 8 + size, innermost);

	if (!at)
		return NULL;
	put_time(trace, at, time_now());
	return at + 8;
}
