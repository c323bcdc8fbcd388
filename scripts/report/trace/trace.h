/*
 * Reads traces: every enter and leave of a thread with its time, one event
 * after another.  Replay, the timelines and their exports are written on this
 * interface:
 *
 *	struct recording recording;
 *	struct model model;
 *	struct trace trace;
 *	struct trace_merge *merge;
 *	struct trace_event event;
 *
 *	recording_open(&recording, path, 0);
 *	trace_open(&trace, &recording);		before functions are named
 *	model_find_functions(&model) (model_build does it too)
 *	merge = trace_merge_begin(&trace, &(struct trace_range){ 0 });
 *	while (trace_merge_next(merge, &event))
 *		switch (event.kind) ...
 *	trace_merge_end(merge);
 *	trace_close(&trace);
 *
 * Memory does not depend on the length of a trace: a reader holds the open
 * calls of its thread and one block. warn() reports all damage, once per file
 * and kind.  The events always nest: for each TRACE_ENTER there is exactly one
 * TRACE_LEAVE, whatever the file contains.
 */
#ifndef REPORT_TRACE_TRACE_H
#define REPORT_TRACE_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <shim/format.h>

#include "base/map.h"
#include "read/recording.h"
#include "trace/gaps.h"

struct trace_block {
	uint64_t sequence;
	uint64_t time;	      /* in clock units of the file */
	uint64_t offset, end; /* in the file */
	/* of a ring: the low half of its count of calls */
	uint32_t calls_before;
};

/* By process: the site of each number. */
struct site_table {
	uint32_t *sites;
	uint32_t count, room;
	uint32_t unused;  /* numbers at the end that have no site */
	uint32_t unknown; /* the site of such numbers */
};

enum trace_kind {
	TRACE_ENTER,  /* @site is called */
	TRACE_LEAVE,  /* the innermost open call of its track ends */
	TRACE_THREAD, /* the first event of a thread */
	/* the last event of a thread; missing if its end was not recorded */
	TRACE_THREAD_END,
	TRACE_NAME, /* trace->threads[thread].name has changed */
	TRACE_MARK, /* the program marked this point with @text */
	/* @text names the range; ranges of a thread need not nest */
	TRACE_RANGE_BEGIN,
	TRACE_RANGE_END, /* ends the latest open range with this @text */
	TRACE_COUNTER,	 /* counter @text has @value from now on */
	/* @text: arguments of the call entered just before */
	TRACE_ARGUMENTS,
	TRACE_RESULT, /* @text: result of the call that is left next */
	TRACE_PAUSE,  /* calls are not recorded from here on */
	/* calls are recorded again; calls opened or ended meanwhile are entered
	 * or left with is_guessed */
	TRACE_RESUME,
	TRACE_LOST, /* @count calls are missing here because of @cause */
	/* the thread has no processor for @duration_ns, waiting or preempted
	 * (trace_gap_text); it does nothing meanwhile */
	TRACE_GAP,
	/* the thread has waited @duration_ns for the lock at @address */
	TRACE_WAIT,
	/* @message: the innermost open call begins to send, has received, or has
	 * taken part in a collective operation */
	TRACE_MESSAGE,
};

/* A thread of a process, numbered in the order of discovery. */
struct trace_thread {
	uint32_t process; /* number in recording->processes */
	uint32_t file;	  /* number in trace->files */
	uint32_t ordinal; /* number among the threads of the file */
	uint32_t tid;
	const char *name; /* "": unknown */
	double begin_ns;
};

struct trace_event {
	enum trace_kind kind;
	uint32_t thread; /* number in trace->threads */
	/* 0: the thread's stack; others are coroutines, whose calls nest
	 * separately */
	uint32_t track;
	/* number of open calls around it on its track; 0: outermost */
	uint32_t depth;
	/* ENTER, LEAVE: number in recording->sites; the site's function is a
	 * number in model->functions */
	uint32_t site;
	/* since trace->start_mono_ns; never decreases within a file or a
	 * merge */
	double time_ns;
	/* LEAVE: since its ENTER; GAP: its length; WAIT: until time_ns */
	double duration_ns;
	/* ENTER and LEAVE: the event was not recorded but must have happened:
	 * the call was open when recording began or continued, or had ended by
	 * then.  Do not count such an ENTER as a call; its time is that of the
	 * first event during the call. */
	bool is_guessed;
	bool is_unwound; /* LEAVE: by longjmp, an exception, ... */
	/* LEAVE, WAIT: it did not end; this is the end of the thread or
	 * process, as far as known */
	bool is_open;
	bool is_failed; /* WAIT: the thread did not get the lock */
	/* LOST: enum shim_lost; GAP: enum shim_switch_kind; WAIT: enum
	 * shim_lock_kind */
	uint32_t cause;
	/* WAIT: the task that held the lock when the wait began; 0: unknown.
	 * GAP with a text: the thread that was late, a number in
	 * trace->threads */
	uint32_t holder;
	uint64_t address;
	uint64_t count;
	double value;
	/* NUL-terminated, valid until the next event; escape it before
	 * printing */
	const char *text;
	/* MESSAGE; valid until the next event */
	const struct shim_trace_message *message;
};

/* A file, which holds one thread after another. */
struct trace_file {
	const char *name; /* "PID.N/3.trace" */
	uint32_t process;
	uint64_t size;
	struct shim_trace_info info;
	uint64_t calls_lost;
	bool is_blamed; /* its damage has been reported */
	/* @missing; other members when everything was read */
	struct trace_damage damage;
	uint64_t ring_calls;	    /* SHIM_TRACE_RING_CALLS */
	struct trace_block *blocks; /* by sequence */
	uint32_t block_count;
};

struct trace {
	struct recording *recording;
	/* CLOCK_MONOTONIC at the start of the first process */
	uint64_t start_mono_ns;
	/* by process and by part: what to add to its CLOCK_MONOTONIC; see
	 * trace/clocks.h */
	uint64_t *shift_ns, *part_shift_ns;
	uint32_t clock_count;
	struct trace_file *files;
	uint32_t file_count;
	struct trace_thread *threads;
	uint32_t thread_count, thread_room;
	struct map by_ordinal; /* file << 32 | ordinal -> thread */
	/* readers that keep their file open, and their limit */
	uint64_t open_files, open_max;
	/* progress of the pass that struct trace_range.doing names */
	const char *doing;
	uint64_t blocks_read, block_count;
	struct site_table *tables; /* by process: sites by number */
	/* by process: types of its arguments, or NULL */
	struct value_table **values;
	/* gaps and system counters, by thread and time; see trace/gaps.c */
	struct trace_gap *gaps;
	uint32_t gap_count, gap_room;
	struct messages *messages; /* trace_find_messages(), or NULL */
};

/* Which events to read; {0}: all.  A call that was open before the range is
 * entered at its begin, with is_guessed; a call that is open after the range is
 * left at its end, with is_open. */
struct trace_range {
	double from_ns;
	double to_ns; /* 0: no end */
	/* Leaves out shorter calls, with their arguments.  Memory grows with
	 * the number of events within this time. */
	double min_duration_ns;
	/* The arrays stay the caller's and outlive the reader. */
	const bool *threads; /* by thread: whether to show it; NULL: all */
	uint32_t depth;	     /* of the shown calls; 0: no limit */
	/* By function: show only calls of these, and what they call; NULL: all.
	 */
	const bool *within;
	/* By function: leave out its calls, but not what they call; NULL: none.
	 */
	const bool *hidden;
	/* Leaves out a call whose shown caller is the same function. */
	bool merges_recursion;
	/* What progress() says while the trace is read, a string of its own for
	 * each pass; NULL: nothing. */
	const char *doing;
};

/* Whether @recording has traces; does not read them. */
bool trace_is_there(const struct recording *recording);

/*
 * trace_open - find the traces of all processes, and add their functions to the
 * sites of @recording; call it before model_build() or model_find_functions()
 *
 * Returns false if there is no trace.
 */
bool trace_open(struct trace *trace, struct recording *recording);
void trace_close(struct trace *trace);

#endif
