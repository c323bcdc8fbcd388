/*
 * The lanes of a timeline, for all formats that show one: processes, threads and
 * coroutines, their numbers and names.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include "export/lanes.h"
#include "model/functions.h"
#include "read/process.h"
#include "read/recording.h"
#include "trace/trace.h"

/* No thread has such a number: they end at 2^22. */
#define TIDS_OF_COROUTINES 10000000u

uint32_t trace_export_pid(const struct trace_export *timeline, uint32_t process)
{
	const struct recording *recording = timeline->recording;

	/* Of several hosts, pids may be the same. */
	return recording->part_count > 1 ? process + 1 :
					   recording->processes[process].pid;
}

const char *trace_export_process_name(const struct trace_export *timeline,
				      uint32_t process)
{
	const struct recording *recording = timeline->recording;
	const struct process *about = &recording->processes[process];
	const char *program = process_string(about, "program");

	program = program ? base_name(program) : "unknown program";
	if (recording->part_count == 1)
		return program;
	return keep_format("%s (%s, pid %u)", program,
			   recording->parts[about->part].name, about->pid);
}

uint32_t trace_export_lane(struct trace_export *timeline,
			   const struct trace_event *event, bool *is_new)
{
	const struct trace_thread *thread =
		&timeline->trace.threads[event->thread];
	uint64_t key = (uint64_t)event->thread << 32 | event->track;
	uint32_t lane = map_add(&timeline->lanes_by_key, key,
				timeline->lane_count);

	*is_new = lane == timeline->lane_count;
	if (!*is_new)
		return lane;
	GROW(timeline->lanes, timeline->lane_count, timeline->lane_room);
	timeline->lanes[timeline->lane_count++] = (struct lane){
		.process = thread->process,
		.thread = event->thread,
		.track = event->track,
		.pid = trace_export_pid(timeline, thread->process),
		.tid = event->track ? TIDS_OF_COROUTINES + lane : thread->tid,
	};
	return lane;
}

const char *trace_export_lane_name(const struct trace_export *timeline,
				   const struct lane *lane)
{
	const struct trace_thread *thread =
		&timeline->trace.threads[lane->thread];
	const char *name = thread->name && thread->name[0] ?
				   thread->name :
				   keep_format("thread %u", thread->tid);

	if (lane->track == 0)
		return name;
	return keep_format("%s, coroutine %u", name, lane->track);
}

const char *trace_export_function(const struct trace_export *timeline,
				  const struct trace_event *event)
{
	uint32_t function = timeline->recording->sites[event->site].function;

	return shown_name(&timeline->model->functions[function],
			  timeline->options);
}

void keep_for_later(struct kept_text *kept, const char *text)
{
	size_t size = strlen(text) + 1;

	if (size > kept->room) {
		kept->room = size * 2;
		kept->text = grow(kept->text, kept->room, 1);
	}
	memcpy(kept->text, text, size);
}
