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
};

/* Of a process: which site a number is. */
struct site_table {
	uint32_t *sites;
	uint32_t count, room;
	uint32_t unknown;		/* of numbers that stand for none */
};

/* trace_read.c: the time of the last record in a file, in clock units; 0: it has
 * none. */
uint64_t trace_last_clock(struct trace *trace, uint32_t file);
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
