/* When threads had no processor. */
#ifndef REPORT_TRACE_GAPS_H
#define REPORT_TRACE_GAPS_H

#include <stdbool.h>
#include <stdint.h>

struct trace;
struct trace_event;

/* A thread had no processor; or what the system counts of a process, for its first. */
struct trace_gap {
	uint32_t part, pid, tid;
	uint32_t kind; /* enum shim_switch_kind */
	double from_ns;
	double to_ns;	     /* of a counter its value */
	const char *counter; /* its name; NULL: it is a gap */
	/* the last gap at or before it of its thread, which are numbered from 1 on;
	 * 0: none */
	uint32_t before;
};

/* Where a reader is in the gaps of its thread. */
struct trace_gaps {
	uint32_t thread;	/* of trace->threads */
	uint32_t next;		/* of trace->gaps */
	struct trace_gap owner; /* one of the thread's */
	double last_ns; /* when the last event was: no gap begins earlier */
	double begin_ns;
};

/* What profrun --gaps has noted, if it has. */
void trace_gaps_open(struct trace *trace);
/* From @event on, the first that is told of @thread. */
void trace_gaps_begin(struct trace_gaps *gaps, const struct trace *trace,
		      const struct trace_event *event);
/* Whether a gap comes before @event, which is told of next: then it is *@gap. */
bool trace_gaps_next(struct trace_gaps *gaps, const struct trace *trace,
		     const struct trace_event *event, struct trace_event *gap);

/* "no processor: waits" or "no processor: preempted" */
const char *trace_gap_text(const struct trace_event *gap);

#endif
