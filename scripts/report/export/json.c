/*
 * The report for programs.  Fields are only ever added.  What is not known is
 * null; times are whole ns, with our own cost taken off unless the name says
 * raw.
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

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/numbers.h"
#include "base/text.h"
#include "export/format.h"
#include "export/json.h"
#include "export/json_exceptions.h"
#include "export/json_locks.h"
#include "model/advice.h"
#include "model/functions.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/options.h"
#include "model/row_order.h"
#include "model/snapshots.h"
#include "model/totals.h"
#include "read/end_text.h"
#include "read/process.h"
#include "read/recording.h"

static const char *const ends[] = {
	[SHIM_END_UNKNOWN] = "unknown",
	[SHIM_END_EXIT] = "exit",
	[SHIM_END_EXEC] = "exec",
	[SHIM_END_ABORT] = "abort",
};

static void put_key(FILE *out, const char *key)
{
	fprintf(out, "\"%s\":", key);
}

static void put_string(FILE *out, const char *key, const char *text)
{
	put_key(out, key);
	put_json(out, text);
}

static void put_count(FILE *out, const char *key, uint64_t count)
{
	fprintf(out, ",\"%s\":%" PRIu64, key, count);
}

static void put_ns(FILE *out, const char *key, double ns, bool is_known)
{
	if (is_known)
		put_count(out, key, whole(ns));
	else
		fprintf(out, ",\"%s\":null", key);
}

static void put_lost(FILE *out, const uint64_t lost[SHIM_LOST_CAUSES])
{
	uint32_t i;

	put_count(out, "lost", lost_sum(lost));
	fputs(",\"lost_causes\":{", out);
	for (i = 0; i < SHIM_LOST_CAUSES; i++)
		fprintf(out, "%s\"%s\":%" PRIu64, i ? "," : "", lost_names[i],
			lost[i]);
	fputc('}', out);
}

/* What is not calls. */
static void put_damage(FILE *out, const struct trace_damage *damage)
{
	fputs(",\"trace_damage\":{", out);
	fprintf(out,
		"\"missing_blocks\":%" PRIu64 ",\"damaged_blocks\":%" PRIu64
		",\"unread_bytes\":%" PRIu64 "}",
		damage->missing, damage->damaged, damage->bytes);
}

static void put_lost_others(FILE *out, const struct model *model)
{
	uint32_t i;

	fputs(",\"lost_others\":{", out);
	for (i = 0; i < SHIM_LOST_KINDS; i++)
		fprintf(out, "%s\"%s\":%" PRIu64, i ? "," : "", lost_kinds[i],
			lost_sum(model->lost_others[i]));
	fputc('}', out);
}

static void put_lacking(FILE *out, const char *key, const struct model *model,
			enum lack lack)
{
	const char **paths = allocate(model->object_count + 1, sizeof(*paths));
	uint32_t count = advice_lacking(model, lack, paths,
					model->object_count);
	uint32_t i;

	fprintf(out, ",\"%s\":[", key);
	for (i = 0; i < count; i++) {
		if (i)
			fputc(',', out);
		put_json(out, paths[i]);
	}
	fputc(']', out);
	free(paths);
}

static void put_process(FILE *out, const struct process *process)
{
	const struct shim_meta *meta = &process->meta;
	bool known = process->has_meta;

	fprintf(out, "{\"pid\":%u,\"number\":%u,\"parent_pid\":%u",
		process->pid, process->number, meta->parent_pid);
	fprintf(out, ",\"forked\":%s", meta->forked ? "true" : "false");
	fputc(',', out);
	put_string(out, "program", process_string(process, "program"));
	fputc(',', out);
	put_string(out, "command", process_string(process, "command"));
	fputc(',', out);
	put_string(out, "end",
		   meta->end < sizeof(ends) / sizeof(*ends) ? ends[meta->end] :
							      "unknown");
	if (meta->end == SHIM_END_EXIT)
		put_count(out, "exit_status", meta->exit_status);
	else
		fputs(",\"exit_status\":null", out);
	put_ns(out, "start_real_ns", (double)meta->start_real_ns, known);
	put_ns(out, "duration_ns",
	       process_ns(process, process->end_clock - meta->first_clock),
	       known);
	fprintf(out, ",\"end_known\":%s,\"clock_unit_ns\":%.9g",
		process->end_source != END_UNKNOWN ? "true" : "false",
		process->unit_ns);
	put_ns(out, "tick_ns", process_ns(process, meta->tick),
	       known && meta->tick);
	put_count(out, "threads", process->file_count);
	fputc('}', out);
}

static void put_histogram(FILE *out, const struct model *model,
			  const struct function *function)
{
	const char *comma = "";
	int i;

	fputs(",\"histogram\":", out);
	if (!function->histogram) {
		fputs("null", out);
		return;
	}
	fputc('[', out);
	for (i = 0; i < SHIM_BUCKETS; i++) {
		if (!function->histogram[i])
			continue;
		fprintf(out, "%s[%" PRIu64 ",%" PRIu64 "]", comma,
			i ? whole(ldexp(model->bucket_ns, i)) : 0,
			function->histogram[i]);
		comma = ",";
	}
	fputc(']', out);
}

static void put_times(FILE *out, const struct sums *sums)
{
	bool known = !is_untimed(sums);

	put_count(out, "calls", sums->calls);
	put_count(out, "open", sums->open);
	put_count(out, "untimed", sums->untimed);
	put_ns(out, "self_ns", sums->self, known);
	put_ns(out, "self_error_ns", sqrt(sums->self_variance), known);
	put_ns(out, "self_raw_ns", sums->self_raw, known);
	put_ns(out, "total_ns", sums->total, known);
	put_ns(out, "total_error_ns", sqrt(sums->total_variance), known);
	put_ns(out, "total_raw_ns", sums->total_raw, known);
	put_ns(out, "mean_ns", mean_ns(sums), known);
}

/* How long they lived, as nanoseconds that they did at least. */
static void put_lives(FILE *out, const struct model *model,
		      const struct memory *memory)
{
	const char *comma = "";
	int i;

	if (!model->memory_tick_ns) {
		fputs(",\"lifetimes\":null", out);
		return;
	}
	fputs(",\"lifetimes\":[", out);
	for (i = 0; i <= SHIM_LIVES_BUCKETS; i++) {
		if (!memory->lives[i])
			continue;
		fprintf(out, "%s[%" PRIu64 ",%" PRIu64 "]", comma,
			whole(memory_life_ns(model, i)), memory->lives[i]);
		comma = ",";
	}
	fputc(']', out);
	put_count(out, "lifetimes_unknown", memory->lives_unknown);
}

/* What a function or path allocated itself; with the sizes, as 2^i. */
static void put_memory(FILE *out, const struct model *model,
		       const struct memory *memory)
{
	const char *comma = "";
	int i;

	fprintf(out, ",\"memory\":{\"allocated_bytes\":%" PRIu64,
		memory->allocated);
	put_count(out, "allocations", memory->allocations);
	put_count(out, "reallocations", memory->reallocations);
	put_count(out, "temporary", memory->temporary);
	put_count(out, "peak_bytes", memory->peak);
	put_count(out, "peak_blocks", memory->peak_blocks);
	put_count(out, "left_bytes", memory->live);
	put_count(out, "left_blocks", memory->live_blocks);
	put_count(out, "mappings", memory->mappings);
	put_count(out, "mapped_bytes", memory->mapped);
	put_count(out, "mapped_left_bytes", memory->mapped_live);
	if (model->memory_heaps_searched) {
		put_count(out, "lost_bytes", memory->lost);
		put_count(out, "lost_blocks", memory->lost_blocks);
		put_count(out, "lost_below_bytes", memory->below);
		put_count(out, "lost_below_blocks", memory->below_blocks);
	}
	fputs(",\"sizes\":[", out);
	for (i = 0; i < SHIM_BUCKETS; i++) {
		if (!memory->sizes[i])
			continue;
		fprintf(out, "%s[%" PRIu64 ",%" PRIu64 "]", comma,
			i ? (uint64_t)1 << i : 0, memory->sizes[i]);
		comma = ",";
	}
	fputc(']', out);
	put_lives(out, model, memory);
	if (model->memory_period)
		put_count(out, "samples", memory->samples);
	fputc('}', out);
}

static void put_function(FILE *out, const struct model *model,
			 struct function *function)
{
	function_line(function);
	fputc('{', out);
	put_string(out, "name", function->name);
	fputc(',', out);
	put_string(out, "mangled", function->mangled);
	fputc(',', out);
	put_string(out, "group", function->group);
	fputc(',', out);
	put_string(out, "object",
		   function->object ? function->object->path : NULL);
	fprintf(out, ",\"address\":\"%#" PRIx64 "\",", function->address);
	put_string(out, "file", function->file);
	if (function->file)
		fprintf(out, ",\"line\":%d", function->line);
	else
		fputs(",\"line\":null", out);
	put_times(out, &function->sums);
	put_ns(out, "min_ns", function->sums.min, function->sums.has_range);
	put_ns(out, "max_ns", function->sums.max, function->sums.has_range);
	put_histogram(out, model, function);
	if (model->has_memory)
		put_memory(
			out, model,
			&model->function_memory[function - model->functions]);
	fputc('}', out);
}

static void put_thread_functions(FILE *out, const struct part_sums *part,
				 const uint32_t *places)
{
	const char *comma = "";
	uint32_t i;

	fputs(",\"functions\":[", out);
	for (i = 0; i < part->count; i++) {
		uint32_t function = part->functions[i];
		const struct sums *sums = &part->sums[function];

		if (places[function] == NONE || (!sums->calls && !sums->open))
			continue;
		fprintf(out, "%s{\"function\":%u", comma, places[function]);
		put_times(out, sums);
		fputc('}', out);
		comma = ",";
	}
	fputc(']', out);
}

static void put_threads(FILE *out, const struct model *model,
			const uint32_t *places)
{
	const struct thread *thread = model->threads;
	struct part_sums part;
	uint32_t i;

	part_sums_begin(&part, model);
	fputs(",\n\"threads\":[", out);
	for (i = 0; i < model->thread_count; i++, thread++) {
		fprintf(out, "%s\n{\"pid\":%u,\"tid\":%u,", i ? "," : "",
			model->recording->processes[thread->process].pid,
			thread->tid);
		put_string(out, "name", thread->name[0] ? thread->name : NULL);
		put_count(out, "calls", thread->calls);
		put_count(out, "open", thread->open);
		put_ns(out, "self_ns",
		       model->raw ? thread->self_raw : thread->self,
		       thread->calls > thread->untimed);
		put_lost(out, thread->lost);
		if (model->by_thread && thread->calls) {
			part_sums_of(&part, model, thread->path);
			put_thread_functions(out, &part, places);
		}
		fputc('}', out);
	}
	fputc(']', out);
	part_sums_end(&part);
}

static void put_path(FILE *out, const struct model *model, uint32_t number,
		     const uint32_t *places)
{
	const struct path *path = &model->paths[number];
	bool known = path->is_timed;
	bool has_parent = path->parent != 0 && path->parent != NONE;

	fprintf(out, "{\"id\":%u,\"parent\":", number);
	if (has_parent)
		fprintf(out, "%u", path->parent);
	else
		fputs("null", out);
	if (path->function == NONE) {
		fprintf(out, ",\"function\":null,\"thread\":%u", path->thread);
		if (model->has_memory)
			put_memory(out, model, &model->memory[number]);
		fputc('}', out);
		return;
	}
	fprintf(out, ",\"function\":%u", places[path->function]);
	put_count(out, "calls", path->calls);
	put_count(out, "open", path->open);
	put_ns(out, "self_ns", shown_self(path->self, path->total), known);
	put_ns(out, "self_error_ns", sqrt(path->self_variance), known);
	put_ns(out, "self_raw_ns", path->self_raw, known);
	put_ns(out, "total_ns", path->total, known);
	put_ns(out, "total_error_ns", sqrt(path->variance), known);
	put_ns(out, "total_raw_ns", path->total_raw, known);
	put_ns(out, "min_ns", path->min,
	       !path->has_no_range && path->max >= path->min);
	put_ns(out, "max_ns", path->max,
	       !path->has_no_range && path->max >= path->min);
	if (model->has_memory)
		put_memory(out, model, &model->memory[number]);
	fputc('}', out);
}

static void put_paths(FILE *out, const struct model *model,
		      const uint32_t *places)
{
	uint32_t i;

	fputs(",\n\"paths\":[", out);
	for (i = 1; i < model->path_count; i++) {
		fputs(i > 1 ? ",\n" : "\n", out);
		put_path(out, model, i, places);
		if (i % 65536 == 0)
			progress("writing", i, model->path_count);
	}
	fputc(']', out);
}

/* --- what lived when somebody asked, and from time to time --- */

static void put_alive(FILE *out, const struct snapshot *snapshot,
		      const struct alive *alive)
{
	fprintf(out, "\"bytes\":%" PRIu64, alive->bytes);
	put_count(out, "blocks", alive->blocks);
	if (snapshot->leaks != SHIM_LEAKS_KNOWN)
		return;
	put_count(out, "lost_bytes", alive->lost);
	put_count(out, "lost_blocks", alive->lost_blocks);
	put_count(out, "lost_below_bytes", alive->below);
	put_count(out, "lost_below_blocks", alive->below_blocks);
}

static void put_snapshot(FILE *out, const struct snapshot *snapshot)
{
	uint32_t i;

	fprintf(out, "{\"pid\":%u,\"number\":%u", snapshot->process->pid,
		snapshot->number);
	put_ns(out, "ns", snapshot->ns, snapshot->ns > 0);
	put_ns(out, "took_ns", snapshot->duration_ns, snapshot->is_complete);
	fprintf(out, ",\"complete\":%s",
		snapshot->is_complete ? "true" : "false");
	put_count(out, "missing_blocks", snapshot->missing);
	fputc(',', out);
	put_alive(out, snapshot, &snapshot->all);
	fputs(",\"paths\":[", out);
	for (i = 0; i < snapshot->path_count; i++) {
		fprintf(out, "%s\n{\"path\":", i ? "," : "");
		if (snapshot->paths[i].path == 0)
			fputs("null,", out);
		else
			fprintf(out, "%u,", snapshot->paths[i].path);
		put_alive(out, snapshot, &snapshot->paths[i]);
		fputc('}', out);
	}
	fputs("]}", out);
}

static void put_snapshots(FILE *out, const struct model *model)
{
	struct point points[SHIM_POINTS];
	uint32_t count = snapshots_points(model->memory_peak_process, points);
	const struct snapshot *snapshot;
	uint32_t i;

	fputs(",\n\"memory_points\":[", out);
	for (i = 0; i < count; i++)
		fprintf(out, "%s[%" PRIu64 ",%" PRIu64 "]", i ? "," : "",
			whole(points[i].ns), points[i].bytes);
	fputs("],\n\"memory_snapshots\":[", out);
	for (i = 0; (snapshot = snapshots_get(model, i)); i++) {
		fputs(i ? ",\n" : "\n", out);
		put_snapshot(out, snapshot);
	}
	fputc(']', out);
}

static void put_warnings(FILE *out)
{
	size_t i;

	fputs(",\n\"warnings\":[", out);
	for (i = 0; i < warning_count(); i++) {
		fputs(i ? ",\n" : "\n", out);
		put_json(out, warning_text(i));
	}
	fputc(']', out);
}

static void put_head(FILE *out, const struct model *model)
{
	const struct recording *recording = model->recording;
	const struct process *first = &recording->processes[0];
	uint32_t i;

	fputs("{\"version\":1,", out);
	put_string(out, "program", process_string(first, "program"));
	fputc(',', out);
	put_string(out, "command", process_string(first, "command"));
	fputc(',', out);
	put_string(out, "filter", process_string(first, "filter"));
	put_ns(out, "duration_ns", model->duration, model->duration > 0);
	fputc(',', out);
	put_string(out, "ended", end_text(recording));
	if (recording->has_end)
		fprintf(out, ",\"wait_status\":%d", recording->wait_status);
	else
		fputs(",\"wait_status\":null", out);
	put_count(out, "calls", model->calls);
	put_count(out, "open", model->open);
	put_ns(out, "time_ns", model->time, model->has_times);
	put_ns(out, "time_raw_ns", model->time_raw, model->has_times);
	fprintf(out, ",\"cost_subtracted\":%s", model->raw ? "false" : "true");
	put_lost(out, model->lost_causes);
	put_lost_others(out, model);
	put_damage(out, &recording->trace_damage);
	put_lacking(out, "stripped", model, LACKS_SYMBOLS);
	put_lacking(out, "without_debug_information", model, LACKS_LINES);
	put_count(out, "orphans", model->orphans);
	put_count(out, "unwound", model->unwound);
	if (model->has_memory) {
		put_memory(out, model, &model->memory_all);
		put_count(out, "memory_peak_bytes", model->memory_peak);
		if (model->memory_period)
			put_count(out, "memory_period_bytes",
				  model->memory_period);
		put_count(out, "memory_untold", model->memory_untold);
		put_count(out, "memory_unknown_releases",
			  model->memory_unknown);
		put_count(out, "memory_early_lost", model->memory_early_lost);
		put_ns(out, "memory_peak_ns", model->memory_peak_ns,
		       model->memory_peak_ns > 0);
		put_count(out, "memory_outside_bytes",
			  model->memory_outside.allocated);
	}
	fputs(",\n\"processes\":[", out);
	for (i = 0; i < recording->process_count; i++) {
		fputs(i ? ",\n" : "\n", out);
		put_process(out, &recording->processes[i]);
	}
	fputc(']', out);
}

void json_print(FILE *out, struct model *model, const struct options *options,
		bool with_paths)
{
	struct sums *sums = allocate(model->function_count, sizeof(*sums));
	/* Where a function stands in the output. */
	uint32_t *places = allocate(model->function_count, sizeof(*places));
	uint32_t *order, count, i;

	for (i = 0; i < model->function_count; i++) {
		sums[i] = model->functions[i].sums;
		places[i] = NONE;
	}
	if (with_paths) /* paths refer to all of them */
		for (i = 0; i < model->function_count; i++)
			sums[i].open++;
	order = row_order_functions(model, sums, options, &count);
	if (options->limit > 0 && options->limit < count)
		count = (uint32_t)options->limit;
	put_head(out, model);
	fputs(",\n\"functions\":[", out);
	for (i = 0; i < count; i++) {
		fputs(i ? ",\n" : "\n", out);
		put_function(out, model, &model->functions[order[i]]);
		places[order[i]] = i;
	}
	fputc(']', out);
	put_threads(out, model, places);
	if (model->locks)
		locks_json(out, model, options);
	if (model->exceptions)
		exceptions_json(out, model, options);
	if (with_paths)
		put_paths(out, model, places);
	if (with_paths && model->has_memory)
		put_snapshots(out, model);
	put_warnings(out);
	fputs("}\n", out);
	free(order);
	free(places);
	free(sums);
}

static void print_with_paths(FILE *out, struct model *model,
			     const struct options *options)
{
	json_print(out, model, options, true);
}

const struct export_format export_json = {
	.name = "json",
	.extension = "json",
	.description = "the whole report, and the call paths",
	.values = VALUES_OF_CALLS,
	.needs_no_times = true,
	.print = print_with_paths,
};
