/*
 * Exports the tree of call paths in speedscope's evented format (the file names
 * its schema).  A path is opened, lasts as long as its own time, contains the
 * paths below it one after another, and is closed: two events, however deep it
 * is.  The result is no timeline; the views "Left Heavy" and "Sandwich" fit.
 * speedscope_time.c exports a timeline.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
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
#include "base/text.h"
#include "export/format.h"
#include "export/speedscope.h"
#include "export/speedscope_time.h"
#include "model/functions.h"
#include "model/locks.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/options.h"
#include "model/totals.h"
#include "read/process.h"

struct speedscope {
	struct json json;
	struct model *model;
	const struct options *options;
	uint32_t *frames; /* by function: its frame */
	/* by function: sum of the positive times of its paths */
	double *shares;
	struct part_sums part;
	double at;    /* sum of the times of all paths so far */
	uint64_t cut; /* number of paths beyond --max-depth */
};

static double weight(const struct speedscope *speedscope, uint32_t number)
{
	const struct model *model = speedscope->model;
	const struct path *path = &model->paths[number];
	enum value value = speedscope->options->value;

	if (value >= VALUE_BYTES)
		return (double)memory_value(&model->memory[number], value);
	if (value == VALUE_WAITS)
		return locks_waited(model, number);
	if (value == VALUE_CALLS)
		return (double)(model->is_sampled ? path->own : path->calls);
	return fmax(path->self, 0) * speedscope->shares[path->function];
}

static const char *unit_of(const struct speedscope *speedscope)
{
	switch (speedscope->options->value) {
	case VALUE_SELF:
	case VALUE_TOTAL:
	case VALUE_WAITS: return "nanoseconds";
	case VALUE_CALLS:
	case VALUE_ALLOCATIONS: return "none";
	default: return "bytes";
	}
}

void speedscope_begin(struct json *json, const struct recording *recording)
{
	const char *name = process_string(&recording->processes[0], "command");

	json_object(json);
	json_key_text(json, "$schema",
		      "https://www.speedscope.app/file-format-schema.json");
	json_line(json, 0);
	json_key_text(json, "exporter", "shim " SHIM_VERSION);
	json_key_text(json, "name", name ? name : base_name(recording->path));
	json_line(json, 0);
}

void speedscope_event(struct json *json, const char *type, uint32_t frame,
		      uint64_t at)
{
	json_line(json, 0);
	json_object(json);
	json_key_text(json, "type", type);
	json_key_count(json, "frame", frame);
	json_key_count(json, "at", at);
	json_close_object(json);
}

void speedscope_frame(struct json *json, struct function *function,
		      const struct options *options)
{
	function_line(function);
	json_line(json, 0);
	json_object(json);
	json_key_text(json, "name", shown_name(function, options));
	if (function->file) {
		json_key_text(json, "file", function->file);
		json_key_integer(json, "line", function->line);
	}
	json_close_object(json);
}

static void put_event(struct speedscope *speedscope, const char *type,
		      uint32_t number)
{
	uint32_t function = speedscope->model->paths[number].function;

	speedscope_event(&speedscope->json, type, speedscope->frames[function],
			 whole(speedscope->at));
}

static bool is_cut(const struct speedscope *speedscope, uint32_t depth)
{
	return depth > speedscope->options->max_depth;
}

/* A path beyond --max-depth counts for its ancestor at that depth. */
static bool enter_path(void *context, uint32_t number, uint32_t depth)
{
	struct speedscope *speedscope = context;

	if (speedscope->model->paths[number].function == NONE)
		return true;
	if (is_cut(speedscope, depth))
		speedscope->cut++;
	else
		put_event(speedscope, "O", number);
	speedscope->at += weight(speedscope, number);
	return true;
}

static void leave_path(void *context, uint32_t number, uint32_t depth)
{
	struct speedscope *speedscope = context;

	if (speedscope->model->paths[number].function != NONE &&
	    !is_cut(speedscope, depth))
		put_event(speedscope, "C", number);
}

struct adding {
	const struct model *model;
	double *above; /* by function: sum of the positive times of its paths */
};

static bool add_above(void *context, uint32_t number, uint32_t depth)
{
	struct adding *adding = context;
	const struct path *path = &adding->model->paths[number];

	(void)depth;
	if (path->function != NONE)
		adding->above[path->function] += fmax(path->self, 0);
	return true;
}

static void leave_added(void *context, uint32_t number, uint32_t depth)
{
	(void)context;
	(void)number;
	(void)depth;
}

static void find_shares(struct speedscope *speedscope, uint32_t root)
{
	const struct model *model = speedscope->model;
	struct part_sums *part = &speedscope->part;
	double *shares = speedscope->shares;
	struct adding adding = { model, shares };
	struct walk walk = { add_above, leave_added, &adding };
	uint32_t i;

	for (i = 0; i < part->count; i++) /* clear those of the previous part */
		shares[part->functions[i]] = 0;
	model_walk(model, root, &walk);
	part_sums_of(part, model, root);
	for (i = 0; i < part->count; i++) {
		double *share = &shares[part->functions[i]];

		if (*share > 0)
			*share = part->sums[part->functions[i]].self / *share;
	}
}

static void put_profile(struct speedscope *speedscope, const char *name,
			uint32_t root)
{
	struct walk walk = { enter_path, leave_path, speedscope };
	struct json *json = &speedscope->json;

	find_shares(speedscope, root);
	speedscope->at = 0;
	json_object(json);
	json_key_text(json, "type", "evented");
	json_key_text(json, "name", name);
	json_key_text(json, "unit", unit_of(speedscope));
	json_key_count(json, "startValue", 0);
	json_key_array(json, "events");
	model_walk(speedscope->model, root, &walk);
	json_close_array(json);
	json_line(json, 0);
	json_key_count(json, "endValue", whole(speedscope->at));
	json_close_object(json);
}

static void put_threads(struct speedscope *speedscope)
{
	const struct model *model = speedscope->model;
	bool is_first = true;
	uint32_t i;

	for (i = 0; i < model->thread_count; i++) {
		const struct thread *thread = &model->threads[i];

		if (!thread->calls && !thread->open)
			continue;
		if (!is_first)
			json_line(&speedscope->json, 0);
		put_profile(
			speedscope,
			keep_format("%u/%u %s",
				    model->recording->processes[thread->process]
					    .pid,
				    thread->tid, thread->name),
			thread->path);
		is_first = false;
	}
}

/* The viewer lists all frames, so only functions on a path become frames. */
static void put_frames(struct speedscope *speedscope)
{
	struct model *model = speedscope->model;
	uint32_t i, function, count = 0;

	for (i = 0; i < model->function_count; i++)
		speedscope->frames[i] = NONE;
	for (i = 0; i < model->path_count; i++) {
		function = model->paths[i].function;
		if (function == NONE || speedscope->frames[function] != NONE)
			continue;
		speedscope_frame(&speedscope->json, &model->functions[function],
				 speedscope->options);
		speedscope->frames[function] = count++;
	}
}

static void speedscope_print(FILE *out, struct model *model,
			     const struct options *options)
{
	struct speedscope speedscope = {
		.json = json_begin(out),
		.model = model,
		.options = options,
		.frames = allocate(model->function_count, sizeof(uint32_t)),
		.shares = allocate(model->function_count, sizeof(double)),
	};
	struct json *json = &speedscope.json;

	part_sums_begin(&speedscope.part, model);
	speedscope_begin(json, model->recording);
	json_key_object(json, "shared");
	json_key_array(json, "frames");
	put_frames(&speedscope);
	json_close_array(json);
	json_close_object(json);
	json_line(json, 0);
	json_key_array(json, "profiles");
	if (model->by_thread)
		put_threads(&speedscope);
	else
		put_profile(&speedscope, "all threads", 0);
	json_close_array(json);
	json_close_object(json);
	json_end(json);
	if (speedscope.cut)
		warn("%" PRIu64 " paths are deeper than %u: they count as what "
		     "is above them (--max-depth)",
		     speedscope.cut, options->max_depth);
	part_sums_end(&speedscope.part);
	free(speedscope.frames);
	free(speedscope.shares);
}

EXPORT_FORMAT(speedscope) = {
	.name = "speedscope",
	.extension = "json",
	.description = "call paths, for https://www.speedscope.app",
	.values = VALUES_OF_CALLS | VALUES_OF_MEMORY | VALUE_BIT(VALUE_WAITS),
	.print = speedscope_print,
	.print_trace = speedscope_print_time,
};
