/* Who is who on a timeline, for all formats that show one. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace_export.h"

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
	const char *name = thread->name && thread->name[0] ? thread->name :
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

static void begin(struct trace_export *timeline, struct recording *recording,
		  struct model *model, const struct options *options,
		  const char *path)
{
	recording_open(recording, path ? path : recording_find(),
		       options->pid);
	*timeline = (struct trace_export){ .recording = recording, .model = model,
				       .options = options };
	if (!trace_open(&timeline->trace, recording))
		die("%s: there is no trace in it (profrun -p trace)",
		    recording->path);
	*model = (struct model){ .recording = recording };
	model_find_functions(model);
}

static void check_words(const char *format, const struct options *options)
{
	bool is_ctf = !strcmp(format, "ctf");

	if (options->value_given || options->threads || options->samples ||
	    options->memory || options->raw)
		die_usage("export %s: has no --value, --threads, --samples, "
			  "--memory, --raw: it is all of a trace", format);
	if (is_ctf && (!options->output || !strcmp(options->output, "-")))
		die_usage("export ctf: is a directory: -o DIR");
	if (!strcmp(format, "perfetto") && isatty(STDOUT_FILENO) &&
	    (!options->output || !strcmp(options->output, "-")))
		die_usage("export perfetto: that is no text for a terminal: "
			  "-o FILE, or a pipe");
}

bool trace_export(const char *format, const struct options *options,
		     const char *path)
{
	struct recording recording;
	struct trace_export timeline;
	struct model model;

	if (strcmp(format, "chrome") && strcmp(format, "perfetto") &&
	    strcmp(format, "ctf"))
		return false;
	check_words(format, options);
	begin(&timeline, &recording, &model, options, path);
	if (!strcmp(format, "ctf"))
		ctf_write(options->output, &timeline);
	else if (!strcmp(format, "perfetto"))
		perfetto_print(output_open(options->output), &timeline);
	else
		chrome_print(output_open(options->output), &timeline);
	progress_end();
	if (strcmp(format, "ctf"))
		output_close();
	trace_close(&timeline.trace);
	return true;
}
