/*
 * Declarations shared by the files of the trace profiler.  The call-path engine is its
 * shadow stack: each call that the engine opens becomes an enter here, and each call
 * that it closes a leave, however the call ended.
 *
 *     trace.c            options, and the start
 *     trace_hooks.c      the hooks, and the interface with the engine
 *     trace_calls.c      calls off the fast path, without system calls
 *     trace_blocks.c     blocks, open calls, memory for records
 *     trace_write.c      records: calls, tracks, pauses
 *     trace_threads.c    threads, marks of the program, and waits for locks
 *     trace_functions.c  functions' numbers
 *     trace_choose.c     the choice of calls
 *     trace_values.c     arguments and results
 *     trace_types.c      types of values
 *
 * A thread writes into a few blocks of its file, one after the other, which stay
 * mapped. When it reuses a block, the block's contents are copied to the end of the
 * file, or of the ring.
 *
 * The fast path first announces its step: the record, its address, and the call that is
 * open after it.  A signal handler that comes between completes the step.  The fast
 * path then repeats the step, which changes nothing but leaves a hole of zeros.
 */
#ifndef TRACE_H
#define TRACE_H

#include "options/options.h"
#include "path/opening.h"

#include <shim/cpu.h>
#include <shim/hooks.h>
#include <shim/locks.h>
#include <shim/message.h>
#include <shim/record.h>

/* Times are in clock units, halved on x86-64, because a nanosecond is precise
 * enough. */
#if defined(__x86_64__)
#define TRACE_SHIFT 1
#else
#define TRACE_SHIFT 0
#endif

#define TRACE_TIME_MASK ((1u << SHIM_TRACE_TIME_BITS) - 1)

/* The @hits of a node whose calls are left out, instead of its function's number. */
#define TRACE_LEFT_OUT UINT32_MAX

#define TRACE_STAGES 32

struct trace_stage {
	char *begin;
	uint32_t size;
	bool is_unwritten; /* its contents have no copy yet */
	bool is_counted;   /* in SHIM_TRACE_RING_CALLS */
};

/* One thread's trace. */
struct trace {
	uint64_t cursor; /* address of the next record */
	uint64_t limit; /* short records begin before it; 0: no short records */
	uint64_t last;	/* the time of the last record, or earlier */
	uint64_t
		busy; /* the address to which the fast path is about to write */
	uint32_t word;		   /* the announced record */
	struct shim_node *becomes; /* its node, which becomes current */
	uint64_t settled; /* the address to which a signal handler wrote it */
	uint64_t end;	  /* of the block */
	struct shim_trace_info *info;
	struct shim_record *record;

	/* Why calls are not recorded. */
	bool is_closed; /* system calls are forbidden */
	bool is_paused;
	bool is_lost;
	bool is_ended;		/* the thread has ended */
	bool is_copying;	/* the parent's calls, for a STACK */
	const void *muted_at;	/* the node whose call is left out */
	struct shim_node *held; /* the node that becomes current, or NULL */
	enum shim_lost cause;
	uint64_t lost_calls; /* since the last LOST record */
	uint64_t retry_clock;
	uint32_t resumes; /* how often recording was resumed */

	uint32_t tid, thread, track;
	char name[16];

	struct trace_stage stages[TRACE_STAGES];
	uint32_t stage_count, stage;
	uint64_t sequence;
	uint64_t next_offset;  /* of the next full block, in the file */
	uint64_t first_offset; /* of the first one */

	/* The last wait for a lock that began. */
	const struct shim_lock *wait;
	uint32_t holder; /* of its lock, 0: unknown */
};

extern bool trace_is_off; /* by shim_trace_stop, off or a signal */

/* --- the fast path --- */

static inline void trace_fence(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

typedef uint16_t trace_u16 __attribute__((may_alias, aligned(2)));
typedef uint32_t trace_u32 __attribute__((may_alias, aligned(2)));
typedef uint64_t trace_u64 __attribute__((may_alias, aligned(2)));

static inline uint32_t trace_enter_word(uint64_t time, uint32_t number)
{
	return SHIM_TRACE_ENTER | (uint32_t)(time & TRACE_TIME_MASK) << 2 |
	       number << 17;
}

static inline uint32_t trace_leave_word(uint64_t time)
{
	return SHIM_TRACE_LEAVE | (uint32_t)(time & TRACE_TIME_MASK) << 1;
}

/*
 * Whether a handler has completed the step that was announced at @at.  Its current call
 * tells, because meanwhile other steps may have been completed: of coroutines that the
 * handler has switched to.  (Of a coroutine that came back without an event, no current
 * call is known.)
 */
static inline bool trace_is_settled(const struct trace *trace,
				    const struct shim_node *becomes,
				    uint64_t at)
{
	const struct shim_node *current =
		*(struct shim_node *volatile *)&tree_hot.current;

	return current == becomes ||
	       (current == &tree_no_call && trace->settled == at);
}

/*
 * Whether a short record can be written.  Then the caller makes @becomes current and
 * calls trace_put().
 */
static inline __attribute__((always_inline)) bool
trace_reserve(struct trace *trace, uint64_t time, uint32_t word,
	      struct shim_node *becomes, char **at)
{
	uint64_t limit, cursor;

	if (__builtin_expect(trace->busy != 0, 0))
		return false;
	/* The limit is read before the cursor, because a signal handler may begin
	 * another block. */
	limit = *(volatile uint64_t *)&trace->limit;
	cursor = *(volatile uint64_t *)&trace->cursor;
	if (__builtin_expect(
		    cursor >= limit || time - trace->last > TRACE_TIME_MASK, 0))
		return false;
	trace->word = word;
	trace->becomes = becomes;
	trace_fence();
	*(volatile uint64_t *)&trace->busy = cursor;
	/* A signal handler before that store has moved the cursor, so this address is
	 * no longer free. */
	if (__builtin_expect(*(volatile uint64_t *)&trace->cursor != cursor &&
				     !trace_is_settled(trace, becomes, cursor),
			     0)) {
		*(volatile uint64_t *)&trace->busy = 0;
		return false;
	}
	trace_fence();
	*at = (char *)cursor;
	return true;
}

static inline __attribute__((always_inline)) void
trace_put(struct trace *trace, char *at, uint64_t time, uint32_t word)
{
	trace_fence();
	if (word & SHIM_TRACE_LEAVE) {
		*(volatile trace_u16 *)at = (uint16_t)word;
		shim_local_add(&trace->cursor, 2);
	} else {
		*(volatile trace_u32 *)at = word;
		shim_local_add(&trace->cursor, 4);
	}
	trace_fence();
	trace->last = time;
	trace_fence();
	*(volatile uint64_t *)&trace->busy = 0;
}

/* The longest struct shim_trace_values without its head: a text of one value. */
#define TRACE_VALUES_SIZE (2 + 2 + SHIM_TRACE_TEXT + 1)

struct trace_record {
	enum shim_trace_kind kind;
	uint32_t size;
	unsigned char bytes[TRACE_VALUES_SIZE];
	char *place; /* its address in the block; NULL: not placed yet */
};

/* The size with the head, rounded up to an even number. */
static inline uint32_t trace_record_size(const struct trace_record *record)
{
	return (2 + record->size + 1) & ~1u;
}

/* Whether the block has room for an enter and @record.  The first store to a page takes
 * long, and a signal may arrive during it.  So this function makes the first store, of
 * 0. */
static inline bool trace_has_room(const struct trace *trace,
				  const struct trace_record *record)
{
	uint64_t next = *(volatile const uint64_t *)&trace->cursor + 4 +
			trace_record_size(record);

	if (next > trace->end)
		return false;
	shim_local_add(
		(uint64_t *)((next - sizeof(next)) & ~(sizeof(next) - 1)), 0);
	return true;
}

/*
 * Does trace_put() for an enter, and reserves the bytes after it for @record, so that
 * no record of a signal handler comes between.  Reserves nothing if such a record has
 * come already.
 */
static inline void trace_put_before(struct trace *trace, char *at,
				    uint64_t time, uint32_t word,
				    struct trace_record *record)
{
	uint64_t next = (uint64_t)at + 4 + trace_record_size(record);

	trace_fence();
	*(volatile trace_u32 *)at = word;
	record->place = NULL;
	if (next <= *(volatile uint64_t *)&trace->end &&
	    shim_local_cas(&trace->cursor, at, (void *)next))
		record->place = at + 4;
	else
		shim_local_add(&trace->cursor, 4);
	trace_fence();
	trace->last = time;
	trace_fence();
	*(volatile uint64_t *)&trace->busy = 0;
}

/* Whether calls of @node need no record, for a reason that a signal handler cannot
 * change.  Counts the call. */
static inline bool trace_is_silent(struct trace *trace,
				   const struct shim_node *node)
{
	if (trace->is_copying)
		return false;
	if (node->hits != TRACE_LEFT_OUT && !trace->muted_at)
		return trace->is_paused && trace_is_off;
	shim_local_add(&trace->info->filtered, 1);
	return true;
}

/* --- with a minimum duration --- */

/* Announces a step that writes nothing, until trace_release().  The caller must
 * check its conditions after the announcement, because a signal handler may have
 * come before. */
static inline void trace_hold(struct trace *trace, struct shim_node *becomes)
{
	trace_fence();
	*(struct shim_node *volatile *)&trace->held = becomes;
	trace_fence();
}

static inline void trace_release(struct trace *trace)
{
	trace_hold(trace, NULL);
}

/* Begins a call that is recorded if it takes long enough.  (The entry is stored twice:
 * a signal handler that comes between uses the same entry.) */
static inline void trace_begin_waiting(struct trace *trace, uint32_t number,
				       uint64_t clock)
{
	struct shim_trace_waiting *waiting =
		(struct shim_trace_waiting *)(trace->info + 1);
	uint64_t count = trace->info->waiting;

	if (count < SHIM_TRACE_WAITING_MAX)
		waiting[count] = (struct shim_trace_waiting){ clock, number };
	trace_fence();
	trace->info->waiting = count + 1;
	trace_fence();
	if (count < SHIM_TRACE_WAITING_MAX)
		waiting[count] = (struct shim_trace_waiting){ clock, number };
}

/* Ends the waiting call that began at @clock, and all calls after it, because a signal
 * handler may have jumped away.  (The call may have ended already.) */
static inline void trace_end_waiting(struct trace *trace, uint64_t clock)
{
	const struct shim_trace_waiting *waiting =
		(const struct shim_trace_waiting *)(trace->info + 1);
	uint64_t count = trace->info->waiting;

	if (count <= SHIM_TRACE_WAITING_MAX)
		while (count > 0 && waiting[count - 1].clock != clock)
			count--;
	trace->info->waiting = count ? count - 1 : 0;
}

/* --- trace_functions.c --- */

/* Returns the number of a function in this process; 0 without memory, and sets
 * *@cause. */
uint32_t trace_number(uint64_t function, enum shim_lost *cause);
void trace_forget(uintptr_t low, uintptr_t high, uint32_t generation);
/* Starts again without numbers.  Called in a fork child. */
void trace_functions_restart(void);
/* The same in a fork child. */
void trace_functions_forked(void);

/* --- trace_write.c --- */

/* The functions of struct path_writer. */
struct trace *trace_make(struct tree *tree, enum shim_lost *cause);
void trace_thread_begins(struct tree *tree);
void trace_thread_ended(struct tree *tree);
void trace_thread_named(struct tree *tree, const char *name);

/* Write the enter of @node's call, which is open already; and its leave, after which
 * the engine only clears the frame. */
void trace_opened(struct shim_node *node);
void trace_closed(struct shim_node *node, bool is_unwound);

/* Writes the list of calls that are open on the stack in use, so that readers need no
 * earlier records. */
void trace_announce(struct tree *tree, bool is_resumed);
/* Writes that another stack is in use now. */
void trace_switch_track(struct tree *tree);
/* Makes the last system calls of this trace. */
void trace_close(struct tree *tree);
/* Completes the step of the fast path that this signal handler interrupted.  False if
 * it interrupted none. */
bool trace_settle(struct trace *trace);
/* Turns the fast path on or off, by the state of the trace. */
void trace_set_limit(struct trace *trace);
/* Called when the call that was left out with all its callees has ended. */
void trace_unmute(struct trace *trace);

/* Writes the enters of the calls that wait for the minimum duration. */
void trace_say_waiting(struct tree *tree, struct shim_node *innermost);

/* Writes a mark or range of the program. */
void trace_text(enum shim_trace_kind kind, const char *text, size_t size);
/* Write the begin and the end of a wait for a lock. */
void trace_wait_begins(const struct shim_lock *lock);
void trace_wait_ends(const struct shim_lock *lock);
/* Writes a message between processes. */
void trace_message(const struct shim_message *message);
/* Writes a counter; @value has the bits of a double. */
void trace_counter(const char *name, uint64_t value);
/* Writes @record, which has no time, to its reserved address if it has one. */
void trace_put_values(const struct trace_record *record);

/* Counts a call that the tree could not open. */
void trace_lose(struct tree *tree, enum shim_lost cause);

/* --- trace_values.c --- */

extern bool trace_asks_arguments;

void trace_values_prepare(bool arguments, bool results);
/* Runs after the other handles exist, because the hooks of the newest handle run first.
 * Returns false if it fails. */
bool trace_values_start(void);
void trace_values_restart(void);

/* Whether the arguments of @function's calls are to be recorded. */
bool trace_asks(shim_function function);

/* Reads the arguments before the call is entered, and makes the record if they are
 * available as bytes.  For TRACE_AS_TEXT, trace_say_arguments() writes them after the
 * enter. */
enum trace_answer {
	TRACE_NOT_ASKED,
	TRACE_NOTHING,
	TRACE_AS_BYTES,
	TRACE_AS_TEXT,
};
enum trace_answer trace_ask(shim_function function, shim_elt_info info,
			    struct trace_record *record);
void trace_say_arguments(shim_function function, shim_elt_info info);

/* --- trace_types.c --- */

/* The form in which values of a type are recorded. */
enum trace_way {
	TRACE_TEXT,
	TRACE_RAW,
	TRACE_POINTER, /* raw, unless it points into an image */
};

/* The description of a function's arguments or its result. */
struct trace_values {
	shim_function function;
	enum shim_result result; /* not SHIM_OK: the values are unknown */
	uint32_t kind;		 /* SHIM_VALUES_KIND_ARGUMENTS, _RESULT */
	uint32_t number;	 /* in N.values; 0: not described there */
	uint32_t count;
	bool has_more;
	struct {
		shim_type type;
		uint32_t number, size;
		enum trace_way way;
	} value[SHIM_VALUES_MAX]; /* stored copies have only @count of them */
};

/* The values of the function are to be recorded, and are not described yet. */
extern const struct trace_values trace_undescribed;

/* Describes the function of @number; *@place receives the description when N.values has
 * all of it.  The result may be @draft. */
const struct trace_values *trace_describe(struct trace_values *draft,
					  shim_function function, uint32_t kind,
					  uint32_t number,
					  const struct trace_values **place);
void trace_types_restart(void);

/* --- trace_choose.c --- */

struct trace_options {
	uint64_t ring_size; /* 0: none */
	uint64_t min_clock; /* shorter calls are left out */
	uint32_t depth;	    /* 0: any */
	int signal;	    /* toggles recording; 0: none */
};

extern struct trace_options trace_options;

/* Takes one of the options after "trace:". */
void trace_take_option(enum option_name name, const struct option_value *value);

/* Called after all options have been read. */
void trace_prepare(struct shim_profiler_handle *handle);

/* The uses of function names in the options. */
enum trace_use { TRACE_TRIGGER, TRACE_EVERY, TRACE_ARGUMENTS, TRACE_RESULTS };

/* Whether an option names a function for @use. */
bool trace_is_wanted(enum trace_use use);
/* Whether an option names @function for @use. */
bool trace_names(uint64_t function, enum trace_use use);

/* Whether all calls of this path are left out.  The mark of @parent says whether its
 * calls are. */
bool trace_leaves_out(const struct shim_node *parent, uint64_t function);
/* Whether calls of @function are counted for every=. */
bool trace_is_counted(uint64_t function);
/* Counts a call of @function, and returns whether the call is left out. */
bool trace_skips(uint64_t function);
/* Like trace_skips(), if the decision is certain.  Otherwise returns false, and counts
 * nothing. */
bool trace_skips_surely(uint64_t function);
void trace_switch(bool is_off);
void trace_toggle(void);

/* --- trace_calls.c --- */

/* Open or close a call of @node at @clock.  Return false, and change nothing, if that
 * takes system calls. */
bool trace_open(struct shim_node *node, uint64_t frame, uint64_t clock);
bool trace_close_short(struct shim_node *node, uint64_t clock);

/* Opens a call whose arguments were read, if its node takes the slow path only for
 * that.  @arguments: a struct trace_record for the call, or NULL. */
bool trace_open_asked(struct shim_node *node, uint64_t frame, void *arguments);

/* The number of a node's function, or TRACE_LEFT_OUT. */
static inline uint32_t node_number(const struct shim_node *node)
{
	enum shim_lost cause;

	return node->group ? trace_number(address_of(node), &cause) :
			     node->hits;
}

static inline bool trace_has_waited(const struct shim_node *node,
				    uint64_t clock)
{
	return frame_waits(node->frame) &&
	       clock - node->start >= trace_options.min_clock;
}

/* --- trace_hooks.c --- */

extern const struct path_writer trace_writer;
extern const struct path_client trace_client, trace_asking_client;

void tree_traced_enter(shim_function function, const void *site);
void tree_traced_leave(shim_function function, const void *site);
void tree_traced_leave_any(shim_function function, const void *site);

#endif
