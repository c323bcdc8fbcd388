/* Removes short calls from events. */
#ifndef REPORT_TRACE_FILTER_H
#define REPORT_TRACE_FILTER_H

#include <stdbool.h>

struct trace_event;
struct trace_reader;

/* Gives the events of @next without calls shorter than @min_ns. */
struct trace_filter;
struct trace_filter *trace_filter_begin(double min_ns);
bool trace_filter_next(struct trace_filter *filter, struct trace_reader *reader,
		       struct trace_event *event,
		       bool (*next)(struct trace_reader *,
				    struct trace_event *));
void trace_filter_end(struct trace_filter *filter);

#endif
