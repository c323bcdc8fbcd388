/*
 * Selects events by thread, function and depth.  Each track has a stack of its
 * open calls, which says of each whether it is shown: a call is entered and left
 * only if it is, so the shown calls nest like all calls.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "read/recording.h"
#include "trace/reader.h"
#include "trace/selection.h"
#include "trace/trace.h"

struct open_call {
	uint32_t function;
	bool is_shown;
	bool is_within; /* a call of a function in range->within */
};

struct open_track {
	struct open_call *calls;
	uint32_t count, room;
	uint32_t shown, within; /* how many of them are */
};

struct trace_selection {
	const struct trace *trace;
	const struct trace_range *range;
	uint32_t thread; /* the thread of @tracks; NONE: none yet */
	struct map by_track;
	struct open_track *tracks;
	uint32_t track_count, track_room;
};

bool trace_selection_is_needed(const struct trace_range *range)
{
	return range->threads || range->depth || range->within ||
	       range->hidden || range->merges_recursion;
}

struct trace_selection *trace_selection_begin(const struct trace *trace,
					      const struct trace_range *range)
{
	struct trace_selection *selection = allocate(1, sizeof(*selection));

	selection->trace = trace;
	selection->range = range;
	selection->thread = NONE;
	return selection;
}

static void forget_tracks(struct trace_selection *selection)
{
	uint32_t i;

	for (i = 0; i < selection->track_count; i++)
		free(selection->tracks[i].calls);
	selection->track_count = 0;
	map_free(&selection->by_track);
}

void trace_selection_end(struct trace_selection *selection)
{
	if (!selection)
		return;
	forget_tracks(selection);
	free(selection->tracks);
	free(selection);
}

static struct open_track *track_of(struct trace_selection *selection,
				   const struct trace_event *event)
{
	uint32_t number;

	if (event->thread != selection->thread)
		forget_tracks(selection);
	selection->thread = event->thread;
	number = map_add(&selection->by_track, event->track,
			 selection->track_count);
	if (number == selection->track_count) {
		GROW(selection->tracks, selection->track_count,
		     selection->track_room);
		selection->tracks[selection->track_count++] =
			(struct open_track){ .count = 0 };
	}
	return &selection->tracks[number];
}

/* The function of the innermost call that is shown; NONE: there is none. */
static uint32_t caller_of(const struct open_track *track)
{
	uint32_t i;

	for (i = track->count; i-- > 0;)
		if (track->calls[i].is_shown)
			return track->calls[i].function;
	return NONE;
}

static bool is_shown(const struct trace_range *range,
		     const struct open_track *track, uint32_t function)
{
	if (range->within && !track->within)
		return false;
	if (range->hidden && range->hidden[function])
		return false;
	if (range->merges_recursion && caller_of(track) == function)
		return false;
	return !range->depth || track->shown < range->depth;
}

static bool enter(const struct trace_selection *selection,
		  struct open_track *track, struct trace_event *event)
{
	const struct trace_range *range = selection->range;
	uint32_t function =
		selection->trace->recording->sites[event->site].function;
	struct open_call *call;

	GROW(track->calls, track->count, track->room);
	call = &track->calls[track->count];
	call->function = function;
	call->is_within = range->within && range->within[function];
	track->within += call->is_within;
	call->is_shown = is_shown(range, track, function);
	event->depth = track->shown;
	track->shown += call->is_shown;
	track->count++;
	return call->is_shown;
}

static bool leave(struct open_track *track, struct trace_event *event)
{
	const struct open_call *call = &track->calls[--track->count];

	track->within -= call->is_within;
	track->shown -= call->is_shown;
	event->depth = track->shown;
	return call->is_shown;
}

bool trace_selection_takes(struct trace_selection *selection,
			   struct trace_event *event)
{
	const struct trace_range *range = selection->range;
	struct open_track *track;

	if (range->threads && !range->threads[event->thread])
		return false;
	track = track_of(selection, event);
	switch (event->kind) {
	case TRACE_ENTER: return enter(selection, track, event);
	case TRACE_LEAVE: return leave(track, event);
	case TRACE_ARGUMENTS:
	case TRACE_RESULT:
		event->depth = track->shown;
		return track->count && track->calls[track->count - 1].is_shown;
	default:
		event->depth = track->shown;
		return !range->within || track->within;
	}
}

/* --- threads --- */

static bool is_thread(const struct trace_thread *thread, const char *wanted)
{
	unsigned long tid;
	char *end;

	tid = strtoul(wanted, &end, 10);
	if (end != wanted && !*end && tid == thread->tid)
		return true;
	return thread->name && !strcmp(thread->name, wanted);
}

/* Marks a thread for each of its names: they change while the file is read. */
static void find_in_file(struct trace *trace, uint32_t file, const char *wanted,
			 struct map *found)
{
	struct trace_reader *reader = trace_begin(
		trace, file,
		&(struct trace_range){ .doing = "looking for the "
						"thread" });
	struct trace_event event;
	uint32_t thread = NONE;

	while (trace_next(reader, &event)) {
		if (event.thread == thread && event.kind != TRACE_NAME)
			continue;
		thread = event.thread;
		if (is_thread(&trace->threads[thread], wanted))
			map_set(found, thread, 1);
	}
	trace_end(reader);
}

bool *trace_find_threads(struct trace *trace, const char *wanted)
{
	struct map found = { .count = 0 };
	bool *threads;
	uint32_t i;

	for (i = 0; i < trace->file_count; i++)
		find_in_file(trace, i, wanted, &found);
	if (!found.count)
		die("%s: no thread %s was recorded", trace->recording->path,
		    wanted);
	threads = allocate(trace->thread_count, sizeof(*threads));
	for (i = 0; i < trace->thread_count; i++)
		threads[i] = map_get(&found, i) != NONE;
	map_free(&found);
	return threads;
}
