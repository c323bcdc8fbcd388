/*
 * profrun stat: time, calls, memory, waits and our own cost, in a sentence each.  What
 * was not recorded has no sentence.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "base/numbers.h"
#include "base/text.h"
#include "model/locks.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/totals.h"
#include "read/end_text.h"
#include "read/process.h"
#include "read/recording.h"
#include "text/stat.h"

#define TOP 3 /* functions that are named */

static uint32_t count_threads(const struct model *model)
{
	uint32_t i, count = 0;

	for (i = 0; i < model->thread_count; i++)
		count += model->threads[i].calls || model->threads[i].open ||
			 model->threads[i].older;
	return count;
}

static uint32_t count_functions(const struct model *model)
{
	uint32_t i, count = 0;

	for (i = 0; i < model->function_count; i++)
		count += sums_are_there(&model->functions[i].sums);
	return count;
}

static double self_of(const struct model *model, uint32_t function)
{
	const struct sums *sums = &model->functions[function].sums;

	return model->has_times ? fmax(sums->self, 0) : (double)sums->calls;
}

/* The functions with the most self time, or calls; returns their number. */
static uint32_t find_top(const struct model *model, uint32_t top[TOP],
			 double *all)
{
	uint32_t i, n, count = 0;

	*all = 0;
	for (i = 0; i < model->function_count; i++) {
		double self = self_of(model, i);

		*all += self;
		if (!(self > 0))
			continue;
		for (n = count; n > 0 && self > self_of(model, top[n - 1]); n--)
			if (n < TOP)
				top[n] = top[n - 1];
		if (n < TOP)
			top[n] = i;
		count += count < TOP;
	}
	return count;
}

/* "1 thread", "3 threads" */
static void put_count(FILE *out, uint64_t count, const char *one)
{
	char text[SHORT_TEXT];

	fprintf(out, "%s %s%s", human_count(text, count), one,
		count == 1 ? "" : "s");
}

static void put_time(FILE *out, const struct model *model)
{
	const struct recording *recording = model->recording;
	const char *command = process_string(&recording->processes[0],
					     "command");
	char text[SHORT_TEXT];

	put_text(out, command ? command : base_name(recording->path));
	fprintf(out, ": %s, ",
		time_text(text, model->duration, model->duration > 0));
	if (recording->process_count > 1)
		fprintf(out, "%u processes, ", recording->process_count);
	put_count(out, count_threads(model), "thread");
	fprintf(out, ", %s.", end_text(recording));
}

static void put_calls(FILE *out, const struct model *model)
{
	uint32_t top[TOP], count, i;
	double all;

	fputc(' ', out);
	put_count(out, model->calls, model->is_sampled ? "sample" : "call");
	fputs(model->is_sampled ? " in " : " of ", out);
	put_count(out, count_functions(model), "function");
	count = find_top(model, top, &all);
	for (i = 0; i < count; i++) {
		fprintf(out, "%s",
			i		  ? ", " :
			!model->has_times ? "; most in " :
			model->is_sampled ? "; most time in " :
					    "; most self time in ");
		put_text(out, model->functions[top[i]].name);
		fprintf(out, " (%.1f %%)", 100 * self_of(model, top[i]) / all);
	}
	fputc('.', out);
}

static void put_memory(FILE *out, const struct model *model)
{
	const struct memory *all = &model->memory_all;
	char bytes[SHORT_TEXT], peak[SHORT_TEXT], left[SHORT_TEXT];

	fputc(' ', out);
	put_count(out, all->allocations, "allocation");
	fprintf(out, " of %s, at most %s at a time, %s left at the end.",
		human_bytes(bytes, all->allocated),
		human_bytes(peak, model->memory_peak),
		human_bytes(left, all->live));
}

static void put_waits(FILE *out, const struct model *model)
{
	const struct waits *waits = &model->locks->all;
	char text[SHORT_TEXT];

	fputc(' ', out);
	put_count(out, waits->waits, "wait");
	fputs(" for ", out);
	put_count(out, model->locks->lock_count, "lock");
	if (waits->waits)
		fprintf(out, ", %s", human_ns(text, waits->time));
	fputc('.', out);
}

static double own_cost(const struct model *model)
{
	return fmax(model->time_raw - fmax(model->time, 0), 0);
}

static bool knows_cost(const struct model *model)
{
	return model->has_times && !model->is_sampled && !model->raw &&
	       !model->budget && model->calls;
}

static const struct model *counted_in(const struct model *model,
				      const struct model *samples)
{
	return samples && !model->calls && !model->open ? samples : model;
}

void stat_print(FILE *out, const struct model *model,
		const struct model *samples)
{
	const struct model *counted = counted_in(model, samples);
	char cost[SHORT_TEXT], raw[SHORT_TEXT];

	put_time(out, counted);
	if (counted->calls || counted->open)
		put_calls(out, counted);
	if (model->has_memory)
		put_memory(out, model);
	if (model->locks)
		put_waits(out, model);
	if (knows_cost(model))
		fprintf(out, " Our own cost: %s of %s.",
			human_ns(cost, own_cost(model)),
			human_ns(raw, model->time_raw));
	if (model->lost) {
		fputs(" LOST: ", out);
		put_count(out, model->lost, "call");
		fputc('.', out);
	}
	fputc('\n', out);
}

void stat_json(FILE *out, const struct model *model,
	       const struct model *samples)
{
	const struct model *counted = counted_in(model, samples);
	const struct recording *recording = model->recording;
	struct json json = json_begin(out);

	json_object(&json);
	json_key_text(&json, "command",
		      process_string(&recording->processes[0], "command"));
	if (model->duration > 0)
		json_key_number(&json, "duration_ns", model->duration, 17);
	else
		json_key_null(&json, "duration_ns");
	json_key_text(&json, "end", end_text(recording));
	json_key_count(&json, "processes", recording->process_count);
	json_key_count(&json, "threads", count_threads(counted));
	json_key_count(&json, counted_name(counted), counted->calls);
	json_key_count(&json, "functions", count_functions(counted));
	json_key_count(&json, "lost", model->lost);
	if (model->has_memory) {
		json_key_count(&json, "allocations",
			       model->memory_all.allocations);
		json_key_count(&json, "allocated_bytes",
			       model->memory_all.allocated);
		json_key_count(&json, "peak_bytes", model->memory_peak);
		json_key_count(&json, "live_bytes", model->memory_all.live);
	}
	if (model->locks) {
		json_key_count(&json, "waits", model->locks->all.waits);
		json_key_number(&json, "waited_ns", model->locks->all.time, 17);
	}
	if (knows_cost(model)) {
		json_key_number(&json, "own_cost_ns", own_cost(model), 17);
		json_key_number(&json, "raw_ns", model->time_raw, 17);
	}
	json_close_object(&json);
	json_end(&json);
}
