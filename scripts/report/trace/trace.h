/*
 * Traces: every enter and leave of a thread with its time, one event after the
 * other.  What replays, draws or exports a timeline is written on this:
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
 * Memory does not depend on how long a trace is: a reader holds the open calls of
 * its thread and one block.  All that was damaged has been said by warn(), once
 * per file and kind, and the events still nest: each call that a reader tells of by
 * TRACE_ENTER is ended by exactly one TRACE_LEAVE, whatever is in the file.
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
	uint64_t time;	       /* the clock, divided */
	uint64_t offset, end;  /* in the file */
	uint32_t calls_before; /* of a ring: its low half */
};

/* Of a process: which site a number is. */
struct site_table {
	uint32_t *sites;
	uint32_t count, room;
	uint32_t unused;  /* numbers behind these that stand for none */
	uint32_t unknown; /* the site of such */
};

enum trace_kind {
	TRACE_ENTER,	   /* @site is called */
	TRACE_LEAVE,	   /* and ends: the innermost open call of its track */
	TRACE_THREAD,	   /* the first event of a thread */
	TRACE_THREAD_END,  /* the last; not there if nobody saw it end */
	TRACE_NAME,	   /* trace->threads[thread].name has changed */
	TRACE_MARK,	   /* the program says @text */
	TRACE_RANGE_BEGIN, /* @text: ranges of a thread need not nest */
	TRACE_RANGE_END,   /* the latest with this text that is open */
	TRACE_COUNTER,	   /* @text is @value from now on */
	TRACE_ARGUMENTS,   /* @text: of the call entered just before */
	TRACE_RESULT,	   /* @text: of the call that is left next */
	TRACE_PAUSE,	   /* calls are not recorded from here */
	/* to here; what was open then is entered and left with is_guessed */
	TRACE_RESUME,
	TRACE_LOST, /* @count calls are missing here, @cause says why */
	/* the thread has no processor for @duration_ns: it waits, or not
	 * (trace_gap_text); nothing else happens on it meanwhile */
	TRACE_GAP,
};

/* A thread of a process.  They are numbered as they are found. */
struct trace_thread {
	uint32_t process; /* of recording->processes */
	uint32_t file;	  /* of trace->files, */
	uint32_t ordinal; /* and of its threads */
	uint32_t tid;
	const char *name; /* "": unknown */
	double begin_ns;
};

struct trace_event {
	enum trace_kind kind;
	uint32_t thread; /* of trace->threads */
	/* 0: the thread's stack; others are coroutines, whose calls nest among
	 * themselves */
	uint32_t track;
	uint32_t depth; /* calls open around it on its track: 0 is outermost */
	/* ENTER, LEAVE: of recording->sites, whose function is one of
	 * model->functions */
	uint32_t site;
	/* since trace->start_mono_ns; never goes back within a file, nor in a merge */
	double time_ns;
	double duration_ns; /* LEAVE: since its ENTER; GAP */
	/* ENTER and LEAVE: not seen, but it must have been: the call was open when
	 * recording began or went on, or had gone then.  Such an ENTER is no call to
	 * count, and the time is that of the first event it was open at. */
	bool is_guessed;
	bool is_unwound; /* LEAVE: by longjmp, an exception, ... */
	/* LEAVE: it never ended, and this is the end of the thread or process, or as
	 * far as anybody knows */
	bool is_open;
	uint32_t cause; /* LOST: enum shim_lost; GAP: enum shim_switch_kind */
	uint64_t count;
	double value;
	/* NUL-terminated, valid until the next event; may hold anything: escape it */
	const char *text;
};

/* A file of one thread after the other. */
struct trace_file {
	const char *name; /* "PID.N/3.trace" */
	uint32_t process;
	uint64_t size;
	struct shim_trace_info info;
	uint64_t calls_lost;
	bool is_blamed;		    /* its damage has been said */
	struct trace_damage damage; /* @missing; the rest when all was read */
	uint64_t ring_calls;	    /* SHIM_TRACE_RING_CALLS */
	struct trace_block *blocks; /* by sequence */
	uint32_t block_count;
};

struct trace {
	struct recording *recording;
	uint64_t start_mono_ns; /* CLOCK_MONOTONIC when it all began */
	struct trace_file *files;
	uint32_t file_count;
	struct trace_thread *threads;
	uint32_t thread_count, thread_room;
	struct map by_ordinal; /* file << 32 | ordinal -> thread */
	uint64_t open_files,
		open_max; /* readers that keep theirs open; as many may */
	struct site_table *tables;   /* by process: sites by number, */
	struct value_table **values; /* and what arguments are, or NULL */
	/* by thread and time, and what the system counts; trace/gaps.c */
	struct trace_gap *gaps;
	uint32_t gap_count, gap_room;
};

/* Which events; {0}: all.  Calls that reach into the range from before are
 * entered at its begin with is_guessed; those that reach out are left at its end
 * with is_open. */
struct trace_range {
	double from_ns;
	double to_ns; /* 0: no end */
	/* Calls that are shorter are left out, with their arguments; memory grows
	 * with what happens in this time. */
	double min_duration_ns;
};

/* Whether @recording has any; without reading them. */
bool trace_is_there(const struct recording *recording);

/*
 * trace_open - finds the traces of all processes, and adds their functions to the
 * sites of @recording; so it comes before model_build() or model_find_functions().
 *
 * Returns false if there is none.
 */
bool trace_open(struct trace *trace, struct recording *recording);
void trace_close(struct trace *trace);

#endif
