/*
 * The lanes (processes, threads and coroutines) of a timeline, with their
 * numbers and names, for all timeline formats.
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

/* No thread has such a number: the kernel's thread ids end at 2^22. */
#define TIDS_OF_COROUTINES 10000000u

uint32_t lanes_pid(const struct lanes *lanes, uint32_t process)
{
	const struct recording *recording = lanes->recording;

	/* Processes of several hosts may have the same pid. */
	return recording->part_count > 1 ? process + 1 :
					   recording->processes[process].pid;
}

const char *lanes_process_name(const struct lanes *lanes, uint32_t process)
{
	const struct recording *recording = lanes->recording;
	const struct process *about = &recording->processes[process];
	const char *program = process_string(about, "program");

	program = program ? base_name(program) : "unknown program";
	if (recording->part_count == 1)
		return program;
	return keep_format("%s (%s, pid %u)", program,
			   recording->parts[about->part].name, about->pid);
}

uint32_t lanes_number(struct lanes *lanes, const struct trace_event *event,
		      bool *is_new)
{
	const struct trace_thread *thread =
		&lanes->trace.threads[event->thread];
	uint64_t key = (uint64_t)event->thread << 32 | event->track;
	const struct lane *last = &lanes->all[lanes->last_lane];
	uint32_t lane;

	*is_new = false;
	if (lanes->lane_count && last->thread == event->thread &&
	    last->track == event->track)
		return lanes->last_lane;
	lane = map_add(&lanes->by_key, key, lanes->lane_count);
	lanes->last_lane = lane;
	*is_new = lane == lanes->lane_count;
	if (!*is_new)
		return lane;
	GROW(lanes->all, lanes->lane_count, lanes->lane_room);
	lanes->all[lanes->lane_count++] = (struct lane){
		.process = thread->process,
		.thread = event->thread,
		.track = event->track,
		.pid = lanes_pid(lanes, thread->process),
		.tid = event->track ? TIDS_OF_COROUTINES + lane : thread->tid,
	};
	return lane;
}

const struct lane *lanes_find(const struct lanes *lanes, uint32_t thread,
			      double time_ns)
{
	uint32_t lane = map_get(&lanes->by_key, (uint64_t)thread << 32);

	return lane == NONE || time_ns < lanes->range.from_ns ||
			       (lanes->range.to_ns > 0 &&
				time_ns > lanes->range.to_ns) ?
		       NULL :
		       &lanes->all[lane];
}

const char *lanes_name(const struct lanes *lanes, const struct lane *lane)
{
	const struct trace_thread *thread = &lanes->trace.threads[lane->thread];
	const char *name = thread->name && thread->name[0] ?
				   thread->name :
				   keep_format("thread %u", thread->tid);

	if (lane->track == 0)
		return name;
	return keep_format("%s, coroutine %u", name, lane->track);
}

const char *lanes_function_name(const struct lanes *lanes,
				const struct trace_event *event)
{
	uint32_t function = lanes->recording->sites[event->site].function;

	return shown_name(&lanes->model->functions[function], lanes->options);
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

const char *lanes_wait_text(const struct lanes *lanes,
			    const struct trace_event *event, char *text,
			    size_t size)
{
	return locks_wait_text(lanes->model,
			       lanes->trace.threads[event->thread].process,
			       event, text, size);
}
