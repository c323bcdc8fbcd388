/*
 * What the files of trace share with each other and with the call tree, which is
 * its shadow stack: each call that the tree opens is an enter here and each that it
 * closes a leave, however it ended.
 *
 *     trace.c            options, and the start
 *     trace_write.c      records, blocks, and what is open
 *     trace_functions.c  functions' numbers
 *     trace_choose.c     which calls
 *     trace_values.c     arguments and results
 *     trace_types.c      what they are
 *
 * A thread writes into a few blocks of its file that stay mapped, one after the
 * other; when it comes to one again, what was in it is copied to the end of the
 * file, or of the ring.
 *
 * The fast path first says what it is going to do: which record, where, and which call
 * is open then.  A handler that comes between does it in its place; doing it again
 * afterwards changes nothing but that a hole of zeros is left.
 */
#ifndef TRACE_H
#define TRACE_H

#include <shim/cpu.h>
#include <shim/hooks.h>
#include <shim/record.h>

struct tree;
struct shim_node;

/* Times are the clock's, divided: a nanosecond is fine enough. */
#if defined(__x86_64__)
#define TRACE_SHIFT 1
#else
#define TRACE_SHIFT 0
#endif

#define TRACE_TIME_MASK ((1u << SHIM_TRACE_TIME_BITS) - 1)

/* In place of a function's number, of nodes: their calls are left out. */
#define TRACE_LEFT_OUT UINT32_MAX

#define TRACE_STAGES 32

struct trace_stage {
	char *begin;
	uint32_t size;
	bool is_unwritten;		/* what is in it is nowhere else */
	bool is_counted;		/* its calls are (SHIM_TRACE_RING_CALLS) */
};

/* One thread's trace. */
struct trace {
	uint64_t cursor;		/* address of the next record */
	uint64_t limit;			/* short records begin before it; 0: none may */
	uint64_t last;			/* the time of the last record, or earlier */
	uint64_t busy;			/* where the fast path is about to write */
	uint32_t word;			/* this record, */
	struct shim_node *becomes;	/* and what is current then */
	uint64_t settled;		/* where a handler did that */
	uint64_t end;			/* of the block */
	struct shim_trace_info *info;
	struct shim_record *record;

	/* Why calls are not recorded. */
	bool is_closed;			/* no system calls any more */
	bool is_paused;
	bool is_lost;
	bool is_ended;			/* the thread */
	bool is_copying;		/* a parent's calls: they are said in a STACK */
	const void *muted_at;		/* the node whose call is left out */
	struct shim_node *held;		/* what is going to be current, or NULL */
	enum shim_lost cause;
	uint64_t lost_calls;		/* since the last LOST record */
	uint64_t retry_clock;
	uint32_t resumes;		/* how often recording went on */

	uint32_t tid, thread, track;
	char name[16];

	struct trace_stage stages[TRACE_STAGES];
	uint32_t stage_count, stage;
	uint64_t sequence;
	uint64_t next_offset;		/* in the file: where a full block goes, */
	uint64_t first_offset;		/* and where the first has gone */
};

extern bool trace_is_off;		/* by shim_trace_stop, or since the start */

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
 * Whether a short record can be written; then, once @becomes is current,
 * trace_put() comes next.
 */
static inline __attribute__((always_inline)) bool
trace_reserve(struct trace *trace, uint64_t time, uint32_t word,
	      struct shim_node *becomes, char **at)
{
	uint64_t limit, cursor;

	if (__builtin_expect(trace->busy != 0, 0))
		return false;
	/* In this order: a handler may go on with another block. */
	limit = *(volatile uint64_t *)&trace->limit;
	cursor = *(volatile uint64_t *)&trace->cursor;
	if (__builtin_expect(cursor >= limit ||
				     time - trace->last > TRACE_TIME_MASK,
			     0))
		return false;
	trace->word = word;
	trace->becomes = becomes;
	trace_fence();
	*(volatile uint64_t *)&trace->busy = cursor;
	/* If one came before that, this is not the place any more. */
	if (__builtin_expect(*(volatile uint64_t *)&trace->cursor != cursor &&
				     trace->settled != cursor,
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

/* A struct shim_trace_values from behind its head on: a text of one value is as long
 * as any. */
#define TRACE_VALUES_SIZE (2 + 2 + SHIM_TRACE_TEXT + 1)

struct trace_record {
	enum shim_trace_kind kind;
	uint32_t size;
	unsigned char bytes[TRACE_VALUES_SIZE];
	char *place;			/* where it goes; NULL: nowhere yet */
};

/* With its head, and an even number. */
static inline uint32_t trace_record_size(const struct trace_record *record)
{
	return (2 + record->size + 1) & ~1u;
}

/* In the block, for an enter and @record.  The first store to a page takes long, and a
 * signal that comes meanwhile is delivered there: it is made now, and stores nothing. */
static inline bool trace_has_room(const struct trace *trace,
				  const struct trace_record *record)
{
	uint64_t next = *(volatile const uint64_t *)&trace->cursor + 4 +
			trace_record_size(record);

	if (next > trace->end)
		return false;
	shim_local_add((uint64_t *)((next - sizeof(next)) & ~(sizeof(next) - 1)), 0);
	return true;
}

/*
 * trace_put() of an enter and room for @record behind it, so that no handler comes
 * between; none if one has come already.
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

/* Whether nothing is written of a call of @node, for a reason that a handler cannot
 * change and that needs nothing said; counts it. */
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

/* As trace_reserve() where there is nothing to write, up to trace_release().  What is
 * to be true then must be looked at in between: a handler may have come before. */
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

/* A call begins that is in the file if it takes long enough.  (Written twice: a
 * handler that comes between uses the same place.) */
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

/* It has ended, and so has what is behind it: a handler may have jumped out of there.
 * (It may not be there any more.) */
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

/* The number of a function in this process; 0: there is no room for it, which sets
 * *@cause. */
uint32_t trace_number(uint64_t function, enum shim_lost *cause);
void trace_forget(uintptr_t low, uintptr_t high, uint32_t generation);
/* In a forked child. */
void trace_functions_restart(void);

/* --- trace_write.c --- */

/* Whether calls are traced at all. */
extern bool tree_is_traced;

/* A file and its first block, or NULL. */
struct trace *trace_make(enum shim_lost *cause);
/* Some thread's first call, or another's in the place of one that is gone. */
void trace_thread_begins(struct tree *tree);
void trace_thread_ended(struct tree *tree);
void trace_thread_named(struct tree *tree, const char *name);

/* A call of @node begins, which is open already; it ends, and is not open any more
 * but for its frame. */
void trace_opened(struct shim_node *node);
void trace_closed(struct shim_node *node, bool is_unwound);

/* What is open on the stack in use is no matter of records before it. */
void trace_announce(struct tree *tree, bool is_resumed);
/* Another stack is in use. */
void trace_switch_track(struct tree *tree);
/* The last chance for system calls. */
void trace_close(struct tree *tree);
/* Does what the fast path was about to do when this handler came. */
void trace_settle(struct trace *trace);
/* Lets the fast path write again, or not. */
void trace_set_limit(struct trace *trace);
/* The call that was left out with all it called has ended. */
void trace_unmute(struct trace *trace);

/* Of calls with a minimum duration: it is no matter any more. */
void trace_say_waiting(struct tree *tree, struct shim_node *innermost);

/* What the program says. */
void trace_text(enum shim_trace_kind kind, const char *text, size_t size);
/* @value: a double's bits. */
void trace_counter(const char *name, uint64_t value);
/* Writes @record, which has no time of its own, where it has its place, or there is
 * one. */
void trace_put_values(const struct trace_record *record);

/* Calls that the tree could not open. */
void trace_lose(struct tree *tree, enum shim_lost cause);

/* --- trace_values.c --- */

extern bool trace_asks_arguments;

void trace_values_prepare(bool arguments, bool results);
/* Last of all: hooks of the newest handle come first.  false: it cannot be. */
bool trace_values_start(void);
void trace_values_restart(void);

/* Whether the arguments of @function's calls are to be recorded. */
bool trace_asks(shim_function function);

/* Asks for them before the call is entered, and gives the record if they are there as
 * bytes; as text trace_say_arguments() writes them afterwards. */
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

/* How values of a type are recorded. */
enum trace_way {
	TRACE_TEXT,
	TRACE_RAW,
	TRACE_POINTER,			/* raw, unless it leads to what has a name */
};

/* What a function is asked for: its arguments or its result. */
struct trace_values {
	shim_function function;
	enum shim_result result;	/* not SHIM_OK: nothing is known of them */
	uint32_t kind;			/* SHIM_VALUES_KIND_ARGUMENTS, _RESULT */
	uint32_t number;		/* in N.values; 0: it is not there */
	uint32_t count;
	bool has_more;
	struct {
		shim_type type;
		uint32_t number, size;
		enum trace_way way;
	} value[SHIM_VALUES_MAX];	/* of one that is kept only @count */
};

/* A function is to be asked, and nothing was described yet. */
extern const struct trace_values trace_undescribed;

/* Describes a function of @number; when all of it is in N.values, *@place gets it.
 * The answer may be @own. */
const struct trace_values *trace_describe(struct trace_values *own,
					  shim_function function, uint32_t kind,
					  uint32_t number,
					  const struct trace_values **place);
void trace_types_restart(void);

/* --- trace_choose.c --- */

struct trace_options {
	uint64_t ring_size;		/* 0: none */
	uint64_t min_clock;		/* shorter calls are left out */
	uint32_t depth;			/* 0: any */
	int signal;			/* which toggles; 0: none */
};

extern struct trace_options trace_options;

/* One item of the options behind "trace:"; false: it is none. */
bool trace_read_option(const char *item, size_t size);

/* Once all are read. */
void trace_prepare(void);

/* What names in the options are for. */
enum trace_use { TRACE_TRIGGER, TRACE_EVERY, TRACE_ARGUMENTS, TRACE_RESULTS };

/* Whether @function is one of those. */
bool trace_names(uint64_t function, enum trace_use use);

/* Whether calls of this path are left out for good; @parent says it of its. */
bool trace_leaves_out(const struct shim_node *parent, uint64_t function);
/* Whether there is something to ask about each call of @function; and asks it. */
bool trace_is_counted(uint64_t function);
bool trace_skips(uint64_t function);
/* false: it is not known yet, and was not asked. */
bool trace_skips_surely(uint64_t function);
void trace_switch(bool is_off);
void trace_toggle(void);

#endif
