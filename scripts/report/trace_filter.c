/*
 * Events without the calls that are too short.  Of a call nobody knows when it is
 * entered how long it will take, so what is entered waits until its time is up or
 * something later happens: then it is told of, or it was never there.
 */
#include <stdlib.h>
#include <string.h>

#include "trace.h"
#include "trace_file.h"

struct waiting {
	struct trace_event event;
	bool is_dropped;
};

struct trace_filter {
	double min_ns;
	struct waiting *waiting;	/* in order; texts are copies */
	uint32_t at, count, room;
	bool is_over;
	char *text;			/* of the event told of last */
};

struct trace_filter *trace_filter_begin(double min_ns)
{
	struct trace_filter *filter = allocate(1, sizeof(*filter));

	filter->min_ns = min_ns;
	return filter;
}

void trace_filter_end(struct trace_filter *filter)
{
	if (!filter)
		return;
	for (uint32_t i = filter->at; i < filter->count; i++)
		free((char *)filter->waiting[i].event.text);
	free(filter->text);
	free(filter->waiting);
	free(filter);
}

static void add(struct trace_filter *filter, const struct trace_event *event)
{
	struct waiting *waiting;

	if (filter->at > 1024 && filter->at > filter->count / 2) {
		filter->count -= filter->at;
		memmove(filter->waiting, filter->waiting + filter->at,
			filter->count * sizeof(*filter->waiting));
		filter->at = 0;
	}
	GROW(filter->waiting, filter->count, filter->room);
	waiting = &filter->waiting[filter->count++];
	*waiting = (struct waiting){ *event, false };
	if (event->text) {
		size_t size = strlen(event->text) + 1;
		char *copy = allocate(size, 1);

		memcpy(copy, event->text, size);
		waiting->event.text = copy;
	}
}

static bool is_of(const struct trace_event *a, const struct trace_event *b)
{
	return a->thread == b->thread && a->track == b->track &&
	       a->depth == b->depth;
}

/* Whether the call that @leave ends waits still, and was too short: then neither it
 * nor what belongs to it alone is told of. */
static bool drop(struct trace_filter *filter, const struct trace_event *leave)
{
	uint32_t i = filter->count, n;

	if (leave->is_open || leave->duration_ns >= filter->min_ns)
		return false;
	while (i-- > filter->at) {
		struct waiting *waiting = &filter->waiting[i];

		if (waiting->is_dropped ||
		    waiting->event.kind != TRACE_ENTER ||
		    !is_of(&waiting->event, leave))
			continue;
		waiting->is_dropped = true;
		for (n = i + 1; n < filter->count; n++)
			if (filter->waiting[n].event.kind == TRACE_ARGUMENTS ||
			    filter->waiting[n].event.kind == TRACE_RESULT)
				filter->waiting[n].is_dropped = true;
		/* Most are the last there is. */
		while (filter->count > filter->at &&
		       filter->waiting[filter->count - 1].is_dropped)
			free((char *)filter->waiting[--filter->count].event.text);
		return true;
	}
	return false;
}

/* Whether the first that waits has waited long enough, now that it is @now_ns. */
static bool is_ready(const struct trace_filter *filter, double now_ns)
{
	const struct waiting *first;

	if (filter->at == filter->count)
		return false;
	first = &filter->waiting[filter->at];
	return filter->is_over || first->is_dropped ||
	       first->event.kind != TRACE_ENTER ||
	       now_ns - first->event.time_ns >= filter->min_ns;
}

bool trace_filter_next(struct trace_filter *filter,
		       struct trace_reader *reader, struct trace_event *event,
		       bool (*next)(struct trace_reader *,
				    struct trace_event *))
{
	double now_ns = filter->count > filter->at ?
		filter->waiting[filter->count - 1].event.time_ns : 0;
	struct trace_event read;

	for (;;) {
		while (is_ready(filter, now_ns)) {
			struct waiting *first = &filter->waiting[filter->at++];

			free(filter->text);
			filter->text = (char *)first->event.text;
			if (first->is_dropped)
				continue;
			*event = first->event;
			return true;
		}
		if (filter->is_over)
			return false;
		if (!next(reader, &read)) {
			filter->is_over = true;
			continue;
		}
		now_ns = read.time_ns;
		if (read.kind == TRACE_LEAVE && drop(filter, &read))
			continue;
		add(filter, &read);
	}
}
