/* Times when threads had no processor. */
#ifndef REPORT_TRACE_GAPS_H
#define REPORT_TRACE_GAPS_H

#include <stdbool.h>
#include <stdint.h>

struct trace;
struct trace_event;

/* Beside enum shim_switch_kind: the thread waits for another process of its job
 * (trace/messages.h). */
enum trace_gap_kind {
	GAP_LATE_SENDER = 16,
	GAP_LATE_RECEIVER,
	GAP_COLLECTIVE,
};

/* A time when a thread had no processor, or waited for another process; or a value
 * of a system counter, as an event of the process's first thread. */
struct trace_gap {
	uint32_t part, pid, tid;
	uint32_t kind; /* enum shim_switch_kind or trace_gap_kind */
	/* of a trace_gap_kind: who was late, and its thread */
	const char *late;
	uint32_t late_thread;
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
/* Adds times; the names in them are kept. */
void trace_gaps_add(struct trace *trace, const struct trace_gap *gaps,
		    uint32_t count);
/* Begins at @event, the first event of @thread. */
void trace_gaps_begin(struct trace_gaps *gaps, const struct trace *trace,
		      const struct trace_event *event);
/* Whether a gap comes before @event, the next event; *@gap is then this gap. */
bool trace_gaps_next(struct trace_gaps *gaps, const struct trace *trace,
		     const struct trace_event *event, struct trace_event *gap);

/* "no processor: waits", "no processor: preempted", or "waits for rank 2, which
 * sends later"; the text is valid until the next call. */
const char *trace_gap_text(const struct trace_event *gap);

#endif
