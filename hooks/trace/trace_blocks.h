/* Blocks, and their memory for records off the fast path. */
#ifndef TRACE_BLOCKS_H
#define TRACE_BLOCKS_H

#include "trace/trace.h"
#include "path/threads.h"

#define HEAD_TIME SHIM_TRACE_HEAD(SHIM_TRACE_TIME, 8)

static inline uint64_t time_now(void)
{
	return now() >> TRACE_SHIFT;
}

static inline bool is_muted(const struct trace *trace)
{
	return trace->is_paused || trace->is_lost || trace->is_copying ||
	       trace->muted_at;
}

/* (Frame 0: the call has ended, and its leave is about to be written.) */
static inline bool is_listed(const struct shim_node *node)
{
	return node->frame != 0 && !(node->frame & FRAME_LEFT_OUT);
}

static inline void count_lost(struct trace *trace)
{
	shim_local_add(&trace->info->lost[trace->cause], 1);
	trace->lost_calls++;
}

static inline void put_word(char *at, uint64_t word)
{
	*(volatile trace_u64 *)at = word;
}

static inline void put_time(struct trace *trace, char *at, uint64_t time)
{
	put_word(at, HEAD_TIME | time << 16);
	trace->last = time;
}

static inline void put_head(char *at, enum shim_trace_kind kind, size_t size)
{
	__atomic_store_n((trace_u16 *)at, SHIM_TRACE_HEAD(kind, size),
			 __ATOMIC_RELEASE);
}

/* Writes a STACK at @at, where the longest STACK must fit.  Returns its size. */
uint32_t trace_put_stack(char *at, struct shim_node *innermost);

/* Divides @memory into blocks that stay mapped; false if it is too small for one
 * block. */
bool trace_add_stages(struct trace *trace, char *memory, size_t size);

/* Adds a block to a trace that began with one. */
void trace_add_stage(struct trace *trace, size_t least);

/* Begins the next block.  By the last records, @innermost is open. */
bool trace_next_block(struct trace *trace, struct shim_node *innermost);

/* Called without memory.  Calls are lost until the next try, because each try makes
 * system calls. */
void trace_begin_loss(struct trace *trace);

/* Reserves @size bytes for a record; NULL without memory.  @innermost is open before
 * the record. */
char *trace_take(struct trace *trace, size_t size, struct shim_node *innermost);

/* Writes a TIME record, and reserves @size bytes after it. */
char *trace_take_timed(struct trace *trace, size_t size,
		       struct shim_node *innermost);

/* --- trace_write.c --- */

/* Whether calls are recorded while @innermost is open. */
bool trace_is_recording(struct tree *tree, struct shim_node *innermost);

/* Makes the next records belong to @tree's stack in use. */
void trace_find_track(struct tree *tree, struct shim_node *innermost);

#endif
