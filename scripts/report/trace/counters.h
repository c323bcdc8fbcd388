/* What the system has counted of processes. */
#ifndef REPORT_TRACE_COUNTERS_H
#define REPORT_TRACE_COUNTERS_H

struct trace;

/* Adds what profrun --counters has noted to trace->gaps. */
void trace_counters_open(struct trace *trace);

#endif
