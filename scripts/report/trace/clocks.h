/* The clocks of several hosts on one time line. */
#ifndef REPORT_TRACE_CLOCKS_H
#define REPORT_TRACE_CLOCKS_H

#include <stdint.h>

struct trace;

/*
 * trace_clocks_open - find out which processes share a clock, and the start of
 * the trace
 *
 * Processes of one boot of a host share CLOCK_MONOTONIC.  Clocks of other hosts
 * and boots are set by the time of day at which each process began.
 */
void trace_clocks_open(struct trace *trace);
void trace_clocks_close(struct trace *trace);
/* @mono_ns of @process as a time since the start of the trace; before it, the
 * result is negative. */
double trace_clocks_ns(const struct trace *trace, uint32_t process,
		       uint64_t mono_ns);
/* The same for profrun's files in a part of the recording (a number in
 * recording->parts), by the clock of its first process. */
double trace_clocks_part_ns(const struct trace *trace, uint32_t part,
			    uint64_t mono_ns);
/* Warns if the trace has several clocks, whose difference is not exact. */
void trace_clocks_tell(const struct trace *trace);

#endif
