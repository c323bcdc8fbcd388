/* Begins and ends the trace of each thread, and writes the marks of the program and its
 * waits for locks. */
#include "trace/trace_blocks.h"
#include "path/threads.h"

#include <shim/banned.h>

struct trace *trace_make(struct tree *tree, enum shim_lost *cause)
{
	struct shim_record *record;
	struct trace *trace;
	void *memory;
	size_t size;

	(void)tree;
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
	trace_add_stages(trace, (char *)memory + 4096, size - 4096);
	trace->stage = trace->stage_count - 1; /* the first stage is next */
	trace->info->block_size = SHIM_TRACE_BLOCK;
	return trace;
}

static void put_thread(struct trace *trace, enum shim_trace_kind kind,
		       struct shim_node *innermost)
{
	struct shim_trace_thread *thread;
	char *at = trace_take_timed(trace, sizeof(*thread), innermost);

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
		if (!trace_next_block(trace, tree->current))
			trace_begin_loss(trace);
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
	at = trace_take_timed(trace, 2, tree->current);
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
	trace_add_stage(trace, 1u << 20);
	trace->is_closed = true;
}

/* --- marks of the program --- */

static struct trace *trace_for_text(struct tree **tree)
{
	struct trace *trace;

	*tree = tree_own();
	if (!*tree)
		*tree = tree_get((uintptr_t)__builtin_frame_address(0));
	trace = *tree ? (*tree)->trace : NULL;
	if (!trace || trace->is_lost || trace->is_paused ||
	    __atomic_load_n(&trace_is_off, __ATOMIC_RELAXED))
		return NULL;
	trace_say_waiting(*tree, tree_collect(*tree));
	trace_find_track(*tree, (*tree)->current);
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
	at = trace_take_timed(trace, whole, tree->current);
	if (!at)
		return;
	put_head(at, SHIM_TRACE_UNFINISHED, whole);
	put_text(at + 2, text, size, whole - 2);
	put_head(at, kind, whole);
}

/* Without reserved bytes right after the enter of its call, records of a signal handler
 * may come between.  Readers still find the call. */
void trace_put_values(const struct trace_record *record)
{
	size_t whole = trace_record_size(record);
	char *at = record->place;
	struct tree *tree;
	struct trace *trace;

	if (UNLIKELY(!at)) {
		trace = trace_for_text(&tree);
		at = trace ? trace_take(trace, whole, tree->current) : NULL;
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
	at = trace_take_timed(trace, whole, tree->current);
	if (!at)
		return;
	put_head(at, SHIM_TRACE_UNFINISHED, whole);
	__builtin_memcpy(at + 8, &value, sizeof(value));
	put_text(at + 16, name, size, whole - 16);
	put_head(at, SHIM_TRACE_COUNTER, whole);
}

/* --- messages --- */

/* Writes member by member, where the record is: to copy a struct would be to wait until its
 * stores are done. */
void trace_message(const struct shim_message *message)
{
	struct tree *tree;
	struct trace *trace = trace_for_text(&tree);
	struct shim_trace_message *record;
	char *at;

	if (!trace)
		return;
	at = trace_take_timed(trace, sizeof(*record), tree->current);
	if (!at)
		return;
	put_head(at, SHIM_TRACE_UNFINISHED, sizeof(*record));
	record = (struct shim_trace_message *)at;
	record->kind = (uint8_t)message->kind;
	record->side = (uint8_t)message->side;
	record->tag = message->tag;
	record->communicator = message->communicator;
	record->size = message->size;
	record->rank = message->rank;
	record->peer = message->peer;
	record->order = message->order;
	record->sent = message->sent;
	record->received = message->received;
	put_head(at, SHIM_TRACE_MESSAGE, sizeof(*record));
}

/* --- waits for locks --- */

static void put_wait(enum shim_trace_kind kind, const struct shim_lock *lock,
		     uint32_t holder, uint64_t waited)
{
	struct shim_trace_wait record = {
		.kind = (uint8_t)lock->kind,
		.failed = lock->error != 0,
		.holder = holder,
		.lock = lock->address,
		.waited = waited,
	};
	struct tree *tree;
	struct trace *trace = trace_for_text(&tree);
	char *at;

	if (!trace)
		return;
	at = trace_take_timed(trace, sizeof(record), tree->current);
	if (!at)
		return;
	put_head(at, SHIM_TRACE_UNFINISHED, sizeof(record));
	__builtin_memcpy(at + 2, (const char *)&record + 2, sizeof(record) - 2);
	put_head(at, kind, sizeof(record));
}

static struct trace *own_trace(void)
{
	struct tree *tree = tree_own();

	return tree ? tree->trace : NULL;
}

/* A record would make all open calls known, also those that will be too short. */
void trace_wait_begins(const struct shim_lock *lock)
{
	struct trace *trace;
	uint32_t holder;

	if (shim_lock_holder(lock, &holder) != SHIM_OK)
		holder = 0;
	if (!trace_options.min_clock)
		put_wait(SHIM_TRACE_WAIT_BEGIN, lock, holder, 0);
	trace = own_trace();
	if (!trace)
		return;
	trace->wait = lock;
	trace->holder = holder;
}

void trace_wait_ends(const struct shim_lock *lock)
{
	uint64_t waited = lock->ended > lock->began ?
				  lock->ended - lock->began :
				  0;
	struct trace *trace = own_trace();
	uint32_t holder = trace && trace->wait == lock ? trace->holder : 0;

	if (lock->began && waited >= trace_options.min_clock)
		put_wait(SHIM_TRACE_WAIT, lock, holder, waited);
}
