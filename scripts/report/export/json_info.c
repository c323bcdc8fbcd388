/*
 * Writes the description of a recording as JSON.  Later versions only add fields.  An
 * unknown value is null.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <shim/format.h>

#include "common/marks.h"
#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "export/json_info.h"
#include "model/budget.h"
#include "model/model.h"
#include "model/totals.h"
#include "read/end_text.h"
#include "read/process.h"
#include "read/recording.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

static const char *const ends[] = {
	[SHIM_END_UNKNOWN] = "unknown",
	[SHIM_END_EXIT] = "exit",
	[SHIM_END_EXEC] = "exec",
	[SHIM_END_ABORT] = "abort",
};

static void put_ns(struct json *json, const char *key, double ns, bool is_known)
{
	if (is_known)
		json_key_number(json, key, ns, 17);
	else
		json_key_null(json, key);
}

/* Writes only the causes that occurred. */
static void put_lost(struct json *json, const uint64_t lost[SHIM_LOST_CAUSES])
{
	uint32_t i;

	json_key_count(json, "lost", lost_sum(lost));
	json_key_object(json, "lost_causes");
	for (i = 0; i < SHIM_LOST_CAUSES; i++)
		if (lost[i])
			json_key_count(json, lost_names[i], lost[i]);
	json_close_object(json);
}

static void put_cost(struct json *json, const struct process *process,
		     const char *key, const struct shim_cost *cost)
{
	json_key_object(json, key);
	json_key_number(json, "inside", cost->inside / 1e3 * process->unit_ns,
			6);
	json_key_number(json, "outside", cost->outside / 1e3 * process->unit_ns,
			6);
	json_close_object(json);
}

static void put_meta(struct json *json, const struct process *process)
{
	static const char *const keys[] = { "program", "command", "directory",
					    "host",    "rank",	  "profile",
					    "filter",  "patch" };
	const struct shim_meta *meta = &process->meta;
	bool known = process->has_meta;
	size_t i;

	for (i = 0; i < LENGTH(keys); i++)
		json_key_text(json, keys[i], process_string(process, keys[i]));
	put_ns(json, "start_real_ns", (double)meta->start_real_ns, known);
	put_ns(json, "duration_ns",
	       process_ns(process, process->end_clock - meta->first_clock),
	       known);
	json_key_text(json, "end",
		      ends[meta->end < LENGTH(ends) ? meta->end : 0]);
	if (meta->end == SHIM_END_EXIT)
		json_key_count(json, "exit_status", meta->exit_status);
	else
		json_key_null(json, "exit_status");
	json_key_flag(json, "end_known", process->end_source != END_UNKNOWN);
	json_key_text(json, "clock",
		      meta->clock == SHIM_CLOCK_TSC	     ? "tsc" :
		      meta->clock == SHIM_CLOCK_MONOTONIC_NS ? "monotonic" :
							       NULL);
	json_key_number(json, "clock_unit_ns", process->unit_ns, 9);
	json_key_flag(json, "clock_unit_is_measured",
		      process->unit_is_measured);
	put_ns(json, "tick_ns", process_ns(process, process_tick(process)),
	       known && process_tick(process));
	put_ns(json, "waited_ns", process_ns(process, meta->waited),
	       known && meta->is_cpu);
	put_ns(json, "cpu_ns", process_cpu_ns(process),
	       process_has_cpu(process));
	json_key_object(json, "cost_ns");
	put_cost(json, process, "coarse", &meta->cost_coarse);
	put_cost(json, process, "exact", &meta->cost_exact);
	json_close_object(json);
	json_key_count(json, "frames_without_leave", meta->unwound);
	json_key_count(json, "leaves_without_enter", meta->orphans);
	json_key_count(json, "call_sites", meta->sites);
	json_key_count(json, "call_sites_off", meta->sites_off);
	json_key_count(json, "threads_lost", meta->lost_threads);
	if (!budget_has(process))
		return;
	json_key_number(json, "budget_percent", meta->budget / 100.0, 6);
	json_key_count(json, "functions_off", meta->throttled);
	json_key_count(json, "bursts", meta->bursts);
	json_key_count(json, "samples", meta->sample_weight);
}

/* Returns the number of the next process's first thread. */
static uint32_t put_threads(struct json *json, const struct model *model,
			    uint32_t process, uint32_t i)
{
	json_key_array(json, "threads");
	for (; i < model->thread_count && model->threads[i].process == process;
	     i++) {
		const struct thread *thread = &model->threads[i];

		json_line(json, 3);
		json_object(json);
		json_key_count(json, "tid", thread->tid);
		json_key_text(json, "name",
			      thread->name[0] ? thread->name : NULL);
		json_key_count(json, counted_name(model), thread->calls);
		json_key_count(json, "open", thread->open);
		json_key_count(json, "open_before", thread->older);
		put_lost(json, thread->lost);
		json_close_object(json);
	}
	json_close_array(json);
	return i;
}

/* What the image's file shows; unknown if it is no longer the file that ran. */
static void put_marks(struct json *json, const struct image *image)
{
	struct marks marks;
	char text[128];

	json_key_text(json, "marks",
		      marks_read_same(&marks, image->path, image->build_id,
				      image->build_id_size) ?
			      marks_text(&marks, text, sizeof(text)) :
			      NULL);
}

static void put_images(struct json *json, const struct process *process)
{
	const struct image *image = process->images;
	const char *id;
	uint32_t i, byte;

	json_key_array(json, "images");
	for (i = 0; i < process->image_count; i++, image++) {
		id = "";
		for (byte = 0; byte < image->build_id_size; byte++)
			id = keep_format("%s%02x", id, image->build_id[byte]);
		json_line(json, 3);
		json_object(json);
		json_key_text(json, "path", image->path);
		json_key_text(json, "build_id", *id ? id : NULL);
		json_key_count(json, "start", image->start);
		json_key_count(json, "end", image->end);
		json_key_count(json, "bias", image->bias);
		json_key_count(json, "generation", image->generation);
		put_marks(json, image);
		json_close_object(json);
	}
	json_close_array(json);
}

static void put_lines(struct json *json, const char *key, const char *at)
{
	const char *end;

	json_key_array(json, key);
	for (; at && *at; at = *end ? end + 1 : end) {
		end = strchrnul(at, '\n');
		json_text(json, keep_text(at, (size_t)(end - at)));
	}
	json_close_array(json);
}

static uint32_t put_process(struct json *json, const struct model *model,
			    uint32_t number, uint32_t thread)
{
	const struct process *process = &model->recording->processes[number];

	json_line(json, 2);
	json_object(json);
	json_key_count(json, "pid", process->pid);
	json_key_count(json, "image", process->number);
	json_key_count(json, "parent_pid", process->meta.parent_pid);
	json_key_flag(json, "forked", process->meta.forked);
	put_meta(json, process);
	thread = put_threads(json, model, number, thread);
	put_images(json, process);
	put_lines(json, "log", process->meta.log);
	json_close_object(json);
	return thread;
}

void json_info_print(FILE *out, const struct model *model)
{
	const struct recording *recording = model->recording;
	const struct trace_damage *damage = &recording->trace_damage;
	struct json json = json_begin(out);
	uint32_t i, thread = 0;

	json_object(&json);
	json_key_text(&json, "recording", recording->path);
	json_key_count(&json, "format_version", SHIM_FORMAT_VERSION);
	put_ns(&json, "duration_ns", model->duration, model->duration > 0);
	json_key_text(&json, "end", end_text(recording));
	json_key_count(&json, counted_name(model), model->calls);
	json_key_count(&json, "functions", called_functions(model));
	json_key_count(&json, "open", model->open);
	json_key_count(&json, "open_before", model->older);
	put_lost(&json, model->lost_causes);
	json_key_object(&json, "lost_others");
	for (i = 0; i < SHIM_LOST_KINDS; i++)
		json_key_count(&json, lost_kinds[i],
			       lost_sum(model->lost_others[i]));
	json_close_object(&json);
	json_key_count(&json, "damaged_records", model->damaged);
	json_key_object(&json, "trace_damage");
	json_key_count(&json, "missing_blocks", damage->missing);
	json_key_count(&json, "damaged_blocks", damage->damaged);
	json_key_count(&json, "unread_bytes", damage->bytes);
	json_close_object(&json);
	json_key_array(&json, "not_recorded");
	for (i = 0; i < recording->part_count; i++)
		if (recording->parts[i].log)
			json_text(&json, recording->parts[i].log);
	json_close_array(&json);
	json_key_array(&json, "processes");
	for (i = 0; i < recording->process_count; i++)
		thread = put_process(&json, model, i, thread);
	json_close_array(&json);
	json_close_object(&json);
	json_end(&json);
}

void json_info_print_sums(FILE *out, const struct model *model)
{
	const struct budget *budget = model->budget;
	bool is_known = model->calls && !model->is_sampled &&
			model->has_times && !model->raw;
	uint32_t paths = 0, i;
	struct json json = json_begin(out);

	for (i = 0; i < model->path_count; i++)
		paths += model->paths[i].function != NONE;
	json_object(&json);
	json_key_count(&json, counted_name(model), model->calls);
	json_key_count(&json, "paths", paths);
	json_key_count(&json, "functions", called_functions(model));
	json_key_count(&json, "open", model->open);
	json_key_count(&json, "open_before", model->older);
	put_lost(&json, model->lost_causes);
	put_ns(&json, "own_cost_ns",
	       budget ? budget->hooks_ns + budget->own_ns :
			fmax(model->time_raw - fmax(model->time, 0), 0),
	       budget || is_known);
	put_ns(&json, "raw_ns", budget ? budget->time_ns : model->time_raw,
	       budget || is_known);
	json_close_object(&json);
	json_end(&json);
}
