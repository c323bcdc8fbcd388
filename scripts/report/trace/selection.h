/* Selects events of a trace by thread, function and depth. */
#ifndef REPORT_TRACE_SELECTION_H
#define REPORT_TRACE_SELECTION_H

#include <stdbool.h>

struct trace;
struct trace_event;
struct trace_range;

/* Whether @range selects anything but times. */
bool trace_selection_is_needed(const struct trace_range *range);

struct trace_selection;
struct trace_selection *trace_selection_begin(const struct trace *trace,
					      const struct trace_range *range);
/* Whether to show @event, the next event of a file; sets the event's depth to
 * the number of shown calls around it. */
bool trace_selection_takes(struct trace_selection *selection,
			   struct trace_event *event);
void trace_selection_end(struct trace_selection *selection);

/* The threads, by number, that have had the name or id @wanted at any time; the
 * caller frees the array.  Reads the whole trace; dies if there is none. */
bool *trace_find_threads(struct trace *trace, const char *wanted);

#endif
