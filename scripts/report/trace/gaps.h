/* Times when threads had no processor. */
#ifndef REPORT_TRACE_GAPS_H
#define REPORT_TRACE_GAPS_H

#include <stdbool.h>
#include <stdint.h>

struct trace;
struct trace_event;

/* A time when a thread had no processor; or a value of a system counter, as an
 * event of the process's first thread. */
struct trace_gap {
	uint32_t part, pid, tid;
	uint32_t kind; /* enum shim_switch_kind */
	double from_ns;
	double to_ns;	     /* of a counter: its value */
	const char *counter; /* name of the counter; NULL: this is a gap */
	/* the number of this thread's last gap at or before this one, counted
	 * from 1; 0: none */
	uint32_t before;
};

/* A reader's position in the gaps of its thread. */
struct trace_gaps {
	uint32_t thread;	/* number in trace->threads */
	uint32_t next;		/* number in trace->gaps */
	struct trace_gap owner; /* a gap of this thread */
	/* time of the last event: gaps begin here at the earliest */
	double last_ns;
	double begin_ns;
};

/* Reads the gaps of profrun --gaps, if they were recorded. */
void trace_gaps_open(struct trace *trace);
/* Begins at @event, the first event of @thread. */
void trace_gaps_begin(struct trace_gaps *gaps, const struct trace *trace,
		      const struct trace_event *event);
/* Whether a gap comes before @event, the next event; *@gap is then this gap. */
bool trace_gaps_next(struct trace_gaps *gaps, const struct trace *trace,
		     const struct trace_event *event, struct trace_event *gap);

/* "no processor: waits" or "no processor: preempted" */
const char *trace_gap_text(const struct trace_event *gap);

#endif
