/* Merges all files of a trace by time.  Events of one file stay in their
 * order. */
#ifndef REPORT_TRACE_MERGE_H
#define REPORT_TRACE_MERGE_H

#include <stdbool.h>

struct trace;
struct trace_event;
struct trace_range;

/* Merges all files of a trace by time.  Events of one file stay in their
 * order. */
struct trace_merge;
struct trace_merge *trace_merge_begin(struct trace *trace,
				      const struct trace_range *range);
bool trace_merge_next(struct trace_merge *merge, struct trace_event *event);
void trace_merge_end(struct trace_merge *merge);

#endif
