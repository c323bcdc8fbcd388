/*
 * What the files of the trace reader share.
 */
#ifndef REPORT_TRACE_FILE_H
#define REPORT_TRACE_FILE_H

#include <fcntl.h>

#include "trace.h"

struct trace_block {
	uint64_t sequence;
	uint64_t time;			/* the clock, divided */
	uint64_t offset, end;		/* in the file */
	uint32_t calls_before;		/* of a ring: its low half */
};

/* A thread had no processor; or what the system counts of a process, for its first. */
struct trace_gap {
	uint32_t part, pid, tid;
	uint32_t kind;			/* enum shim_switch_kind */
	double from_ns;
	double to_ns;			/* of a counter its value */
	const char *counter;		/* its name; NULL: it is a gap */
	uint32_t before;		/* the last gap at or before it of its thread,
					 * which are numbered from 1 on; 0: none */
};

/* Where a reader is in the gaps of its thread. */
struct trace_gaps {
	uint32_t thread;		/* of trace->threads */
	uint32_t next;			/* of trace->gaps */
	struct trace_gap owner;		/* one of the thread's */
	double last_ns;			/* when the last event was: no gap begins earlier */
	double begin_ns;
};

/* Of a process: which site a number is. */
struct site_table {
	uint32_t *sites;
	uint32_t count, room;
	uint32_t unused;		/* numbers behind these that stand for none */
	uint32_t unknown;		/* the site of such */
};

/* trace_read.c: the time of the last record in a file, in clock units; 0: it has
 * none. */
uint64_t trace_last_clock(struct trace *trace, uint32_t file);
/* trace_gaps.c: what profrun --gaps has noted, if it has. */
void trace_gaps_open(struct trace *trace);
/* trace_values.c: what N.values, which is @size bytes of @data, describes. */
void trace_values_read(struct trace *trace, uint32_t process,
		       const char *name, const unsigned char *data,
		       uint64_t size, const struct shim_file *header);
void trace_values_close(struct value_table *table);
/* A struct shim_trace_values of @size bytes as text, for which there are @room bytes;
 * *@function gets the number of the function it is of, or 0.  @kind:
 * SHIM_VALUES_KIND_ARGUMENTS or _RESULT.  false: some of it is unknown. */
bool trace_values_text(const struct value_table *table,
		       const unsigned char *record, uint32_t size,
		       uint32_t kind, char *text, size_t room,
		       uint32_t *function);
/* trace_counters.c: adds what profrun --counters has noted to trace->gaps. */
void trace_counters_open(struct trace *trace);
/* From @event on, the first that is told of @thread. */
void trace_gaps_begin(struct trace_gaps *gaps, const struct trace *trace,
		      const struct trace_event *event);
/* Whether a gap comes before @event, which is told of next: then it is *@gap. */
bool trace_gaps_next(struct trace_gaps *gaps, const struct trace *trace,
		     const struct trace_event *event, struct trace_event *gap);
/* trace_filter.c: what @next gives, without calls shorter than @min_ns. */
struct trace_filter;
struct trace_filter *trace_filter_begin(double min_ns);
bool trace_filter_next(struct trace_filter *filter,
		       struct trace_reader *reader, struct trace_event *event,
		       bool (*next)(struct trace_reader *,
				    struct trace_event *));
void trace_filter_end(struct trace_filter *filter);
/* When its first block began. */
double trace_begins_ns(struct trace *trace, uint32_t file);

#endif
