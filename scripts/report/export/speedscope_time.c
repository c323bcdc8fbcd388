/*
 * Exports a window of a trace in speedscope's evented format: a profile for each
 * lane, in its view "Time Order".  The calls of a thread are written as they are
 * read.  A coroutine's calls wait in memory until its thread ends, because a
 * profile must be in one piece.  The frames come last: only then is known which
 * functions are on the timeline.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/numbers.h"
#include "export/lanes.h"
#include "export/speedscope.h"
#include "export/speedscope_time.h"
#include "model/model.h"
#include "trace/reader.h"
#include "trace/trace.h"

struct kept_event {
	bool is_enter;
	uint32_t frame;
	uint64_t at;
};

/* A coroutine of the current thread. */
struct kept_lane {
	uint32_t lane;
	struct kept_event *events;
	uint32_t count, room;
};

struct timed {
	struct json json;
	struct lanes *lanes;
	uint32_t *frames;    /* by function: its frame, or NONE */
	uint32_t *functions; /* by frame */
	uint32_t frame_count;
	bool has_profile; /* a profile was written */
	bool has_open;	  /* one is being written */
	uint32_t thread;  /* the thread that is being read, or NONE */
	struct kept_lane *kept;
	uint32_t kept_count, kept_room;
	struct map by_lane;
	uint64_t end; /* time of the last event in the profile */
};

static uint32_t frame_of(struct timed *timed, const struct trace_event *event)
{
	uint32_t function =
		timed->lanes->recording->sites[event->site].function;
	uint32_t *frame = &timed->frames[function];

	if (*frame == NONE) {
		*frame = timed->frame_count;
		timed->functions[timed->frame_count++] = function;
	}
	return *frame;
}

/* All profiles begin with the window, so that they can be compared. */
static void begin_profile(struct timed *timed, uint32_t number)
{
	const struct lane *lane = &timed->lanes->all[number];
	struct json *json = &timed->json;

	if (timed->has_profile)
		json_line(json, 0);
	timed->has_profile = timed->has_open = true;
	timed->end = whole(timed->lanes->range.from_ns);
	json_object(json);
	json_key_text(json, "type", "evented");
	json_key_text(json, "name",
		      keep_format("%u/%u %s", lane->pid, lane->tid,
				  lanes_name(timed->lanes, lane)));
	json_key_text(json, "unit", "nanoseconds");
	json_key_count(json, "startValue", timed->end);
	json_key_array(json, "events");
}

static void end_profile(struct timed *timed)
{
	struct json *json = &timed->json;

	if (!timed->has_open)
		return;
	timed->has_open = false;
	json_close_array(json);
	json_line(json, 0);
	json_key_count(json, "endValue", timed->end);
	json_close_object(json);
}

static void write_event(struct timed *timed, bool is_enter, uint32_t frame,
			uint64_t at)
{
	/* A call of no duration may have been rounded. */
	if (at > timed->end)
		timed->end = at;
	speedscope_event(&timed->json, is_enter ? "O" : "C", frame, timed->end);
}

static void end_thread(struct timed *timed)
{
	uint32_t i, n;

	end_profile(timed);
	for (i = 0; i < timed->kept_count; i++) {
		struct kept_lane *kept = &timed->kept[i];

		begin_profile(timed, kept->lane);
		for (n = 0; n < kept->count; n++)
			write_event(timed, kept->events[n].is_enter,
				    kept->events[n].frame, kept->events[n].at);
		end_profile(timed);
		free(kept->events);
	}
	timed->kept_count = 0;
	map_free(&timed->by_lane);
	timed->thread = NONE;
}

static void keep_event(struct timed *timed, uint32_t lane, bool is_enter,
		       uint32_t frame, uint64_t at)
{
	uint32_t number = map_add(&timed->by_lane, lane, timed->kept_count);
	struct kept_lane *kept;

	if (number == timed->kept_count) {
		GROW(timed->kept, timed->kept_count, timed->kept_room);
		timed->kept[timed->kept_count++] = (struct kept_lane){
			.lane = lane
		};
	}
	kept = &timed->kept[number];
	GROW(kept->events, kept->count, kept->room);
	kept->events[kept->count++] = (struct kept_event){ is_enter, frame,
							   at };
}

static void put_event(struct timed *timed, const struct trace_event *event)
{
	bool is_enter = event->kind == TRACE_ENTER, is_new;
	uint32_t lane, frame;

	if (!is_enter && event->kind != TRACE_LEAVE)
		return;
	if (event->thread != timed->thread)
		end_thread(timed);
	timed->thread = event->thread;
	lane = lanes_number(timed->lanes, event, &is_new);
	frame = frame_of(timed, event);
	if (event->track) {
		keep_event(timed, lane, is_enter, frame, whole(event->time_ns));
		return;
	}
	if (!timed->has_open)
		begin_profile(timed, lane);
	write_event(timed, is_enter, frame, whole(event->time_ns));
}

static void put_file(struct timed *timed, uint32_t file)
{
	struct lanes *lanes = timed->lanes;
	struct trace_reader *reader = trace_begin(&lanes->trace, file,
						  &lanes->range);
	struct trace_event event;

	while (trace_next(reader, &event))
		put_event(timed, &event);
	end_thread(timed);
	trace_end(reader);
}

static void put_frames(struct timed *timed)
{
	struct lanes *lanes = timed->lanes;
	struct json *json = &timed->json;
	uint32_t i;

	json_key_object(json, "shared");
	json_key_array(json, "frames");
	for (i = 0; i < timed->frame_count; i++)
		speedscope_frame(json,
				 &lanes->model->functions[timed->functions[i]],
				 lanes->options);
	json_close_array(json);
	json_close_object(json);
}

void speedscope_print_time(FILE *out, struct lanes *lanes)
{
	uint32_t count = lanes->model->function_count, i;
	struct timed timed = {
		.json = json_begin(out),
		.lanes = lanes,
		.frames = allocate(count, sizeof(uint32_t)),
		.functions = allocate(count, sizeof(uint32_t)),
		.thread = NONE,
	};
	struct json *json = &timed.json;

	for (i = 0; i < count; i++)
		timed.frames[i] = NONE;
	speedscope_begin(json, lanes->recording);
	json_key_array(json, "profiles");
	for (i = 0; i < lanes->trace.file_count; i++)
		put_file(&timed, i);
	json_close_array(json);
	json_line(json, 0);
	put_frames(&timed);
	json_close_object(json);
	json_end(json);
	free(timed.kept);
	free(timed.frames);
	free(timed.functions);
}
