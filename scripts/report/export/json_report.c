/*
 * Writes the JSON report.  Later versions only add fields.  An unknown value is
 * null.  Times are whole ns with our own cost subtracted, unless the name of
 * the field contains "raw".
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/numbers.h"
#include "export/estimates.h"
#include "export/format.h"
#include "export/json_report.h"
#include "export/json_exceptions.h"
#include "export/json_locks.h"
#include "model/advice.h"
#include "model/bounds.h"
#include "model/budget.h"
#include "model/estimates.h"
#include "model/functions.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/options.h"
#include "model/row_order.h"
#include "model/shown.h"
#include "model/snapshots.h"
#include "model/totals.h"
#include "read/end_text.h"
#include "read/process.h"
#include "read/recording.h"

static const char *const ends[] = {
	[SHIM_END_UNKNOWN] = "unknown",	  [SHIM_END_EXIT] = "exit",
	[SHIM_END_EXEC] = "exec",	  [SHIM_END_ABORT] = "abort",
	[SHIM_END_DETACHED] = "detached",
};

/* Writes what --hide, --only and --focus leave out. */
static void put_hidden(struct json *json, const struct model *model)
{
	if (!model->hidden)
		return;
	json_key_object(json, "hidden");
	json_key_count(json, "functions", model->hidden->functions);
	if (!model->is_sampled)
		json_key_count(json, "calls", model->hidden->calls);
	json_key_count(json, "time_of_no_shown_caller_ns",
		       whole(model->hidden->outside));
	json_key_count(json, "time_without_focus_ns",
		       whole(model->hidden->time));
	json_close_object(json);
}

static void put_ns(struct json *json, const char *key, double ns, bool is_known)
{
	if (is_known)
		json_key_count(json, key, whole(ns));
	else
		json_key_null(json, key);
}

struct range {
	double min, min_most, max, max_most;
	bool is_known;
};

static void put_range(struct json *json, const struct range *range)
{
	bool known = range->is_known;
	double min_below = duration_bound(range->min, range->min_most);
	double max_below = duration_bound(range->max, range->max_most);

	put_ns(json, "min_ns", range->min, known && !min_below);
	put_ns(json, "min_below_ns", min_below, known && min_below);
	put_ns(json, "max_ns", range->max, known && !max_below);
	put_ns(json, "max_below_ns", max_below, known && max_below);
}

static void put_lost(struct json *json, const uint64_t lost[SHIM_LOST_CAUSES])
{
	uint32_t i;

	json_key_count(json, "lost", lost_sum(lost));
	json_key_object(json, "lost_causes");
	for (i = 0; i < SHIM_LOST_CAUSES; i++)
		json_key_count(json, lost_names[i], lost[i]);
	json_close_object(json);
}

/* Writes damage of traces. */
static void put_damage(struct json *json, const struct trace_damage *damage)
{
	json_key_object(json, "trace_damage");
	json_key_count(json, "missing_blocks", damage->missing);
	json_key_count(json, "damaged_blocks", damage->damaged);
	json_key_count(json, "unread_bytes", damage->bytes);
	json_close_object(json);
}

static void put_lost_others(struct json *json, const struct model *model)
{
	uint32_t i;

	json_key_object(json, "lost_others");
	for (i = 0; i < SHIM_LOST_KINDS; i++)
		json_key_count(json, lost_kinds[i],
			       lost_sum(model->lost_others[i]));
	json_close_object(json);
}

static void put_lacking(struct json *json, const char *key,
			const struct model *model, enum lack lack)
{
	const char **paths = allocate(model->object_count + 1, sizeof(*paths));
	uint32_t count = advice_lacking(model, lack, paths,
					model->object_count);
	uint32_t i;

	json_key_array(json, key);
	for (i = 0; i < count; i++)
		json_text(json, paths[i]);
	json_close_array(json);
	free(paths);
}

/* By process. */
static uint32_t *count_threads(const struct model *model)
{
	uint32_t *counts = allocate(model->recording->process_count,
				    sizeof(*counts));
	uint32_t i;

	for (i = 0; i < model->thread_count; i++)
		counts[model->threads[i].process]++;
	return counts;
}

static void put_process(struct json *json, const struct process *process,
			uint32_t threads)
{
	const struct shim_meta *meta = &process->meta;
	bool known = process->has_meta;

	json_object(json);
	json_key_count(json, "pid", process->pid);
	json_key_count(json, "number", process->number);
	json_key_count(json, "parent_pid", meta->parent_pid);
	json_key_flag(json, "forked", meta->forked);
	json_key_text(json, "program", process_string(process, "program"));
	json_key_text(json, "command", process_string(process, "command"));
	json_key_text(json, "end",
		      meta->end < sizeof(ends) / sizeof(*ends) ?
			      ends[meta->end] :
			      "unknown");
	if (meta->end == SHIM_END_EXIT)
		json_key_count(json, "exit_status", meta->exit_status);
	else
		json_key_null(json, "exit_status");
	put_ns(json, "start_real_ns", (double)meta->start_real_ns, known);
	put_ns(json, "duration_ns",
	       process_ns(process, process->end_clock - meta->first_clock),
	       known);
	json_key_flag(json, "end_known", process->end_source != END_UNKNOWN);
	json_key_number(json, "clock_unit_ns", process->unit_ns, 9);
	put_ns(json, "tick_ns", process_ns(process, process_tick(process)),
	       known && process_tick(process));
	json_key_text(json, "times",
		      meta->is_cpu || budget_is_calibrated(process) ? "cpu" :
								      "wall");
	put_ns(json, "waited_ns", process_ns(process, meta->waited),
	       known && meta->is_cpu);
	put_ns(json, "cpu_ns", process_cpu_ns(process),
	       process_has_cpu(process));
	json_key_count(json, "threads", threads);
	json_close_object(json);
}

static void put_pair(struct json *json, uint64_t first, uint64_t second)
{
	json_array(json);
	json_count(json, first);
	json_count(json, second);
	json_close_array(json);
}

static void put_histogram(struct json *json, const struct model *model,
			  const struct function *function)
{
	int i;

	if (!function->histogram) {
		json_key_null(json, "histogram");
		return;
	}
	json_key_array(json, "histogram");
	for (i = 0; i < SHIM_BUCKETS; i++)
		if (function->histogram[i])
			put_pair(json,
				 i ? whole(ldexp(model->bucket_ns, i)) : 0,
				 function->histogram[i]);
	json_close_array(json);
}

static void put_times(struct json *json, const struct sums *sums, double all)
{
	bool known = !is_untimed(sums);
	struct count calls = count_of_sums(sums);

	json_calls(json, &calls, sums_are_counted(sums));
	json_key_count(json, "open", sums->open);
	json_key_count(json, "open_before", sums->older);
	json_key_count(json, "untimed", sums->untimed);
	put_ns(json, "self_ns", sums->self, known);
	put_ns(json, "self_error_ns", sqrt(sums->self_variance), known);
	put_ns(json, "self_raw_ns", sums->self_raw, known);
	put_ns(json, "total_ns", sums->total, known);
	put_ns(json, "total_error_ns", sqrt(sums->total_variance), known);
	put_ns(json, "total_raw_ns", sums->total_raw, known);
	put_ns(json, "waited_ns", sums->waited, sums->has_waited);
	put_ns(json, "waited_below_ns", waited_bound(sums),
	       waited_bound(sums) > 0);
	put_ns(json, "mean_ns", mean_ns(sums), known && mean_is_known(sums));
	json_bounds(json, known ? self_bound(sums, all) : 0,
		    known ? total_bound(sums, all) : 0);
}

/* Writes lifetimes as their lower bounds in nanoseconds. */
static void put_lives(struct json *json, const struct model *model,
		      const struct memory *memory)
{
	int i;

	if (!model->memory_tick_ns) {
		json_key_null(json, "lifetimes");
		return;
	}
	json_key_array(json, "lifetimes");
	for (i = 0; i <= SHIM_LIVES_BUCKETS; i++)
		if (memory->lives[i])
			put_pair(json, whole(memory_life_ns(model, i)),
				 memory->lives[i]);
	json_close_array(json);
	json_key_count(json, "lifetimes_unknown", memory->lives_unknown);
}

/* Writes the memory that a function or path allocated itself; sizes are powers
 * of 2. */
static void put_memory(struct json *json, const struct model *model,
		       const struct memory *memory)
{
	int i;

	json_key_object(json, "memory");
	json_key_count(json, "allocated_bytes", memory->allocated);
	json_key_count(json, "allocations", memory->allocations);
	json_key_count(json, "reallocations", memory->reallocations);
	json_key_count(json, "temporary", memory->temporary);
	json_key_count(json, "peak_bytes", memory->peak);
	json_key_count(json, "peak_blocks", memory->peak_blocks);
	json_key_count(json, "left_bytes", memory->live);
	json_key_count(json, "left_blocks", memory->live_blocks);
	json_key_count(json, "mappings", memory->mappings);
	json_key_count(json, "mapped_bytes", memory->mapped);
	json_key_count(json, "mapped_left_bytes", memory->mapped_live);
	if (model->memory_heaps_searched) {
		json_key_count(json, "lost_bytes", memory->lost);
		json_key_count(json, "lost_blocks", memory->lost_blocks);
		json_key_count(json, "lost_below_bytes", memory->below);
		json_key_count(json, "lost_below_blocks", memory->below_blocks);
	}
	json_key_array(json, "sizes");
	for (i = 0; i < SHIM_BUCKETS; i++)
		if (memory->sizes[i])
			put_pair(json, i ? (uint64_t)1 << i : 0,
				 memory->sizes[i]);
	json_close_array(json);
	put_lives(json, model, memory);
	if (model->memory_period)
		json_key_count(json, "samples", memory->samples);
	json_close_object(json);
}

static void put_function(struct json *json, const struct model *model,
			 struct function *function)
{
	char address[SHORT_TEXT];

	function_line(function);
	snprintf(address, sizeof(address), "%#" PRIx64, function->address);
	json_object(json);
	json_key_text(json, "name", function->name);
	json_key_text(json, "mangled", function->mangled);
	json_key_text(json, "group", function->group);
	json_key_text(json, "object",
		      function->object ? function->object->path : NULL);
	json_key_text(json, "address", address);
	json_key_text(json, "file", function->file);
	if (function->file)
		json_key_integer(json, "line", function->line);
	else
		json_key_null(json, "line");
	put_times(json, &function->sums, model->time);
	put_range(json,
		  &(struct range){ function->sums.min, function->sums.min_most,
				   function->sums.max, function->sums.max_most,
				   function->sums.has_range });
	if (model->is_sampled)
		json_key_count(json, "guessed", function->sums.guessed);
	put_histogram(json, model, function);
	if (model->has_memory)
		put_memory(
			json, model,
			&model->function_memory[function - model->functions]);
	json_close_object(json);
}

static void put_thread_functions(struct json *json, const struct model *model,
				 const struct part_sums *part,
				 const uint32_t *places)
{
	uint32_t i;

	json_key_array(json, "functions");
	for (i = 0; i < part->count; i++) {
		uint32_t function = part->functions[i];
		const struct sums *sums = &part->sums[function];

		if (places[function] == NONE || !sums_are_there(sums))
			continue;
		json_object(json);
		json_key_count(json, "function", places[function]);
		put_times(json, sums, model->time);
		json_close_object(json);
	}
	json_close_array(json);
}

static void put_threads(struct json *json, const struct model *model,
			const uint32_t *places)
{
	const struct thread *thread = model->threads;
	struct part_sums part;
	uint32_t i;

	part_sums_begin(&part, model);
	json_line(json, 0);
	json_key_array(json, "threads");
	for (i = 0; i < model->thread_count; i++, thread++) {
		struct count calls = count_of_thread(thread);

		json_line(json, 0);
		json_object(json);
		json_key_count(
			json, "pid",
			model->recording->processes[thread->process].pid);
		json_key_count(json, "tid", thread->tid);
		json_key_text(json, "name",
			      thread->name[0] ? thread->name : NULL);
		json_calls(json, &calls, true);
		json_key_count(json, "open", thread->open);
		json_key_count(json, "open_before", thread->older);
		put_ns(json, "self_ns",
		       model->raw ? thread->self_raw : thread->self,
		       thread->calls > thread->untimed || model->budget);
		put_lost(json, thread->lost);
		if (model->by_thread && (thread->calls || thread->older)) {
			part_sums_of(&part, model, thread->path);
			put_thread_functions(json, model, &part, places);
		}
		json_close_object(json);
	}
	json_close_array(json);
	part_sums_end(&part);
}

static void put_path(struct json *json, const struct model *model,
		     uint32_t number, const uint32_t *places)
{
	const struct path *path = &model->paths[number];
	bool known = path->is_timed;
	struct count calls = count_of_path(path);
	bool has_parent = path->parent != 0 && path->parent != NONE;

	json_object(json);
	json_key_count(json, "id", number);
	if (has_parent)
		json_key_count(json, "parent", path->parent);
	else
		json_key_null(json, "parent");
	if (path->function == NONE) {
		json_key_null(json, "function");
		json_key_count(json, "thread", path->thread);
		if (model->has_memory)
			put_memory(json, model, &model->memory[number]);
		json_close_object(json);
		return;
	}
	json_key_count(json, "function", places[path->function]);
	json_calls(json, &calls, path_is_counted(path));
	json_key_count(json, "open", path->open);
	json_key_count(json, "open_before", path->older);
	if (model->is_sampled)
		json_key_count(json, "guessed", path->guessed);
	put_ns(json, "self_ns", path_self(path), known);
	put_ns(json, "self_error_ns", sqrt(path->self_variance), known);
	put_ns(json, "self_raw_ns", path->self_raw, known);
	put_ns(json, "total_ns", path_total(path), known);
	put_ns(json, "total_error_ns", sqrt(path->variance), known);
	put_ns(json, "total_raw_ns", path->total_raw, known);
	json_bounds(json, known ? path_self_bound(path) : 0,
		    known ? path_total_bound(path) : 0);
	put_range(json, &(struct range){ path->min, path->min_most, path->max,
					 path->max_most,
					 !path->has_no_range &&
						 path->max >= path->min });
	if (model->has_memory)
		put_memory(json, model, &model->memory[number]);
	json_close_object(json);
}

static void put_paths(struct json *json, const struct model *model,
		      const uint32_t *places)
{
	uint32_t i;

	json_line(json, 0);
	json_key_array(json, "paths");
	for (i = 1; i < model->path_count; i++) {
		json_line(json, 0);
		put_path(json, model, i, places);
		if (i % 65536 == 0)
			progress("writing", i, model->path_count);
	}
	json_close_array(json);
}

/* --- heap snapshots, and the size of the heap over time --- */

static void put_alive(struct json *json, const struct snapshot *snapshot,
		      const struct alive *alive)
{
	json_key_count(json, "bytes", alive->bytes);
	json_key_count(json, "blocks", alive->blocks);
	if (snapshot->leaks != SHIM_LEAKS_KNOWN)
		return;
	json_key_count(json, "lost_bytes", alive->lost);
	json_key_count(json, "lost_blocks", alive->lost_blocks);
	json_key_count(json, "lost_below_bytes", alive->below);
	json_key_count(json, "lost_below_blocks", alive->below_blocks);
}

static void put_snapshot(struct json *json, const struct snapshot *snapshot)
{
	uint32_t i;

	json_object(json);
	json_key_count(json, "pid", snapshot->process->pid);
	json_key_count(json, "number", snapshot->number);
	put_ns(json, "ns", snapshot->ns, snapshot->ns > 0);
	put_ns(json, "took_ns", snapshot->duration_ns, snapshot->is_complete);
	json_key_flag(json, "complete", snapshot->is_complete);
	json_key_count(json, "missing_blocks", snapshot->missing);
	put_alive(json, snapshot, &snapshot->all);
	json_key_array(json, "paths");
	for (i = 0; i < snapshot->path_count; i++) {
		json_line(json, 0);
		json_object(json);
		if (snapshot->paths[i].path == 0)
			json_key_null(json, "path");
		else
			json_key_count(json, "path", snapshot->paths[i].path);
		put_alive(json, snapshot, &snapshot->paths[i]);
		json_close_object(json);
	}
	json_close_array(json);
	json_close_object(json);
}

static void put_snapshots(struct json *json, const struct model *model)
{
	struct point points[SHIM_POINTS];
	uint32_t count = snapshots_points(model->memory_peak_process, points);
	const struct snapshot *snapshot;
	uint32_t i;

	json_line(json, 0);
	json_key_array(json, "memory_points");
	for (i = 0; i < count; i++)
		put_pair(json, whole(points[i].ns), points[i].bytes);
	json_close_array(json);
	json_line(json, 0);
	json_key_array(json, "memory_snapshots");
	for (i = 0; (snapshot = snapshots_get(model, i)); i++) {
		json_line(json, 0);
		put_snapshot(json, snapshot);
	}
	json_close_array(json);
}

void json_put_warnings(struct json *json)
{
	size_t i;

	json_line(json, 0);
	json_key_array(json, "warnings");
	for (i = 0; i < warning_count(); i++) {
		json_line(json, 0);
		json_text(json, warning_text(i));
	}
	json_close_array(json);
}

static void put_head(struct json *json, const struct model *model)
{
	const struct recording *recording = model->recording;
	const struct process *first = &recording->processes[0];
	struct count calls = count_of_model(model);
	uint32_t *threads = count_threads(model), i;

	json_key_count(json, "version", 1);
	json_key_text(json, "program", process_string(first, "program"));
	json_key_text(json, "command", process_string(first, "command"));
	json_key_text(json, "filter", process_string(first, "filter"));
	put_ns(json, "duration_ns", model->duration, model->duration > 0);
	json_key_text(json, "ended", end_text(recording));
	if (recording->has_end)
		json_key_integer(json, "wait_status", recording->wait_status);
	else
		json_key_null(json, "wait_status");
	json_calls(json, &calls, true);
	json_key_count(json, "open", model->open);
	json_key_count(json, "open_before", model->older);
	if (model->is_sampled)
		json_key_count(json, "guessed", model->guessed);
	put_ns(json, "time_ns", model->time, model->has_times);
	put_ns(json, "time_raw_ns", model->time_raw, model->has_times);
	json_key_flag(json, "cost_subtracted", !model->raw);
	put_lost(json, model->lost_causes);
	put_lost_others(json, model);
	put_damage(json, &recording->trace_damage);
	json_key_count(json, "damaged_records", model->damaged);
	put_lacking(json, "stripped", model, LACKS_SYMBOLS);
	put_lacking(json, "without_debug_information", model, LACKS_LINES);
	json_budget(json, model);
	put_hidden(json, model);
	json_key_count(json, "orphans", model->orphans);
	json_key_count(json, "unwound", model->unwound);
	if (model->has_memory || model->memory_older)
		json_key_count(json, "memory_older_releases",
			       model->memory_older);
	if (model->has_memory) {
		put_memory(json, model, &model->memory_all);
		json_key_count(json, "memory_peak_bytes", model->memory_peak);
		if (model->memory_period)
			json_key_count(json, "memory_period_bytes",
				       model->memory_period);
		json_key_count(json, "memory_untold", model->memory_untold);
		json_key_count(json, "memory_unknown_releases",
			       model->memory_unknown);
		json_key_count(json, "memory_early_lost",
			       model->memory_early_lost);
		put_ns(json, "memory_peak_ns", model->memory_peak_ns,
		       model->memory_peak_ns > 0);
		json_key_count(json, "memory_outside_bytes",
			       model->memory_outside.allocated);
	}
	json_line(json, 0);
	json_key_array(json, "processes");
	for (i = 0; i < recording->process_count; i++) {
		json_line(json, 0);
		put_process(json, &recording->processes[i], threads[i]);
	}
	json_close_array(json);
	free(threads);
}

void json_report_print(FILE *out, struct model *model,
		       const struct options *options, bool with_paths)
{
	struct json json = json_begin(out);
	struct sums *sums = sums_of_functions(model);
	/* The index of each function in the output. */
	uint32_t *places = allocate(model->function_count, sizeof(*places));
	uint32_t *order, count, i;

	for (i = 0; i < model->function_count; i++)
		places[i] = NONE;
	if (with_paths) /* paths refer to all of them */
		for (i = 0; i < model->function_count; i++)
			sums[i].open++;
	order = row_order_functions(model, sums, options, &count);
	if (options->limit > 0 && options->limit < count)
		count = (uint32_t)options->limit;
	json_object(&json);
	put_head(&json, model);
	json_line(&json, 0);
	json_key_array(&json, "functions");
	for (i = 0; i < count; i++) {
		json_line(&json, 0);
		put_function(&json, model, &model->functions[order[i]]);
		places[order[i]] = i;
	}
	json_close_array(&json);
	put_threads(&json, model, places);
	if (model->locks)
		locks_json(&json, model, options);
	if (model->exceptions)
		exceptions_json(&json, model, options);
	if (with_paths)
		put_paths(&json, model, places);
	if (with_paths && model->has_memory)
		put_snapshots(&json, model);
	json_put_warnings(&json);
	json_close_object(&json);
	json_end(&json);
	free(order);
	free(places);
	free(sums);
}

static void print_with_paths(FILE *out, struct model *model,
			     const struct options *options)
{
	json_report_print(out, model, options, true);
}

EXPORT_FORMAT(json) = {
	.name = "json",
	.extension = "json",
	.description = "the whole report, and the call paths",
	.values = VALUES_OF_CALLS,
	.needs_no_times = true,
	.print = print_with_paths,
};
