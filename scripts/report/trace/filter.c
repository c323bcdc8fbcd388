/*
 * Removes calls that are too short from a sequence of events.  The duration of
 * a call is unknown when it is entered, so each ENTER waits until the call has
 * been open long enough, or has ended.  Then the filter passes the call on or
 * drops it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "trace/filter.h"
#include "trace/trace.h"

struct waiting {
	struct trace_event event;
	struct shim_trace_message message;
	bool is_dropped;
};

struct trace_filter {
	double min_ns;
	struct waiting *waiting; /* in order; their texts are copies */
	uint32_t at, count, room;
	uint32_t gone; /* number of events before waiting[0] */
	/* by track and depth: number of the last ENTER of any call */
	struct map entered;
	uint32_t thread; /* the thread of @entered */
	bool is_over;
	/* those of the last event passed on */
	char *text;
	struct shim_trace_message message;
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
	map_free(&filter->entered);
	free(filter->text);
	free(filter->waiting);
	free(filter);
}

static uint64_t key_of(const struct trace_event *event)
{
	return (uint64_t)event->track << 32 | event->depth;
}

static void note_enter(struct trace_filter *filter,
		       const struct trace_event *event)
{
	if (event->thread != filter->thread)
		map_free(&filter->entered);
	filter->thread = event->thread;
	map_set(&filter->entered, key_of(event), filter->gone + filter->count);
}

static void append_event(struct trace_filter *filter,
			 const struct trace_event *event)
{
	struct waiting *waiting;

	if (event->kind == TRACE_ENTER)
		note_enter(filter, event);
	if (filter->at > 1024 && filter->at > filter->count / 2) {
		filter->gone += filter->at;
		filter->count -= filter->at;
		memmove(filter->waiting, filter->waiting + filter->at,
			filter->count * sizeof(*filter->waiting));
		filter->at = 0;
	}
	GROW(filter->waiting, filter->count, filter->room);
	waiting = &filter->waiting[filter->count++];
	*waiting = (struct waiting){ .event = *event };
	if (event->message)
		waiting->message = *event->message;
	if (event->text) {
		size_t size = strlen(event->text) + 1;
		char *copy = allocate(size, 1);

		memcpy(copy, event->text, size);
		waiting->event.text = copy;
	}
}

/* The index of the ENTER of the call that @leave ends, if it still waits;
 * otherwise filter->count. */
static uint32_t find_enter(const struct trace_filter *filter,
			   const struct trace_event *leave)
{
	uint32_t number = leave->thread == filter->thread ?
				  map_get(&filter->entered, key_of(leave)) :
				  NONE;
	uint32_t i = number - filter->gone;

	return number != NONE && number >= filter->gone + filter->at &&
			       i < filter->count &&
			       !filter->waiting[i].is_dropped &&
			       filter->waiting[i].event.kind == TRACE_ENTER ?
		       i :
		       filter->count;
}

static void drop_if(struct trace_filter *filter, uint32_t i,
		    enum trace_kind kind)
{
	if (i < filter->count && filter->waiting[i].event.kind == kind)
		filter->waiting[i].is_dropped = true;
}

/* Drops the call that @leave ends if its ENTER still waits and the call was too
 * short.  Its arguments (the event after its ENTER) and its result (the event
 * before its LEAVE) are dropped as well. */
static bool drop(struct trace_filter *filter, const struct trace_event *leave)
{
	uint32_t i;

	if (leave->is_open || leave->duration_ns >= filter->min_ns)
		return false;
	i = find_enter(filter, leave);
	if (i == filter->count)
		return false;
	filter->waiting[i].is_dropped = true;
	drop_if(filter, i + 1, TRACE_ARGUMENTS);
	drop_if(filter, filter->count - 1, TRACE_RESULT);
	/* Most dropped calls are at the end of the queue. */
	while (filter->count > filter->at &&
	       filter->waiting[filter->count - 1].is_dropped)
		free((char *)filter->waiting[--filter->count].event.text);
	return true;
}

/* Whether the first waiting event can be passed on at the time @now_ns. */
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

bool trace_filter_next(struct trace_filter *filter, struct trace_reader *reader,
		       struct trace_event *event,
		       bool (*next)(struct trace_reader *,
				    struct trace_event *))
{
	double now_ns =
		filter->count > filter->at ?
			filter->waiting[filter->count - 1].event.time_ns :
			0;
	struct trace_event read;

	for (;;) {
		while (is_ready(filter, now_ns)) {
			struct waiting *first = &filter->waiting[filter->at++];

			free(filter->text);
			filter->text = (char *)first->event.text;
			if (first->is_dropped)
				continue;
			*event = first->event;
			filter->message = first->message;
			if (event->message)
				event->message = &filter->message;
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
		append_event(filter, &read);
	}
}
