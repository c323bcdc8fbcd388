/* Reads the system's counters of processes. */
#ifndef REPORT_TRACE_COUNTERS_H
#define REPORT_TRACE_COUNTERS_H

struct trace;

/* Adds the counters of profrun --counters to trace->gaps. */
void trace_counters_open(struct trace *trace);

#endif
