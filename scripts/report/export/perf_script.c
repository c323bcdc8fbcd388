/*
 * Exports the text of perf script, which flame graph tools, speedscope and the
 * Firefox Profiler read.  A sample becomes an event with its period, a path of
 * calls becomes one event whose period is its own time.  So do, behind the first
 * SAMPLES_MAX, all samples of a path: their number is that of a recording, which may be
 * damaged.  The recording has no times of samples: events of a thread follow one another
 * without a pause, in the order of the tree, so only sums over time are meant.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/numbers.h"
#include "base/text.h"
#include "export/format.h"
#include "model/functions.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/options.h"
#include "model/totals.h"
#include "read/process.h"

#define SAMPLES_MAX (1u << 20)

struct script {
	FILE *out;
	const struct model *model;
	const struct options *options;
	const struct thread *thread;
	uint64_t now_ns; /* time of the next event */
	uint64_t paths_done;
	uint64_t deeper;  /* the sum of paths below one at --max-depth */
	uint64_t cut;	  /* the number of paths beyond it */
	uint64_t samples; /* that have been written */
	uint64_t summed;  /* samples in events of several */
};

static uint64_t period_of(const struct script *script, uint32_t number)
{
	const struct model *model = script->model;
	const struct path *path = &model->paths[number];
	enum value value = script->options->value;

	if (value >= VALUE_BYTES)
		return memory_value(&model->memory[number], value);
	if (value == VALUE_CALLS)
		return model->is_sampled ? path->own : path->calls;
	return whole(path->self);
}

static const char *event_name(const struct script *script)
{
	switch (script->options->value) {
	case VALUE_CALLS: return counted_name(script->model);
	case VALUE_BYTES: return "allocated-bytes";
	case VALUE_ALLOCATIONS: return "allocations";
	case VALUE_PEAK: return "peak-bytes";
	case VALUE_LEAKED: return "leaked-bytes";
	case VALUE_LOST: return "lost-bytes";
	default: return "cpu-clock";
	}
}

/* Readers take a name that ends in digits and blanks for other columns. */
static void put_thread(const struct script *script)
{
	const struct thread *thread = script->thread;
	const struct process *process =
		&script->model->recording->processes[thread->process];
	const char *program = process_string(process, "program");
	const char *name = *thread->name ? thread->name :
			   program	 ? base_name(program) :
					   "thread";
	char *copy = (char *)keep_text(name, 15), *at;

	make_harmless(copy);
	for (at = copy; *at; at++)
		if (*at == ' ')
			*at = '_';
	fprintf(script->out, "%s %u/%u", copy, process->pid, thread->tid);
}

/* An inlined function has no address of its own.  A line is where `perf script
 * -F +srcline` has it. */
static void put_frame(const struct script *script, const struct path *path)
{
	const struct model *model = script->model;
	const struct function *function = &model->functions[path->function];
	FILE *out = script->out;

	fprintf(out, "\t%16" PRIx64 " ",
		function->is_inlined ? 0 : function->address);
	put_text(out, shown_name(function, script->options));
	fputs(" (", out);
	put_text(out, function->is_inlined ? "inlined" :
		      function->object	   ? function->object->path :
					     "[unknown]");
	fputs(")\n", out);
	if (path->place == NONE)
		return;
	fputs("  ", out);
	put_text(out, base_name(model->frames.places[path->place].file));
	fprintf(out, ":%d\n", model->frames.places[path->place].line);
}

static void put_event(struct script *script, uint32_t number, uint64_t period)
{
	const struct path *paths = script->model->paths;

	put_thread(script);
	fprintf(script->out, " %" PRIu64 ".%09" PRIu64 ": %10" PRIu64 " %s:\n",
		script->now_ns / 1000000000, script->now_ns % 1000000000,
		period, event_name(script));
	for (; paths[number].function != NONE; number = paths[number].parent)
		put_frame(script, &paths[number]);
	fputc('\n', script->out);
	script->now_ns += period;
}

static bool is_samples(const struct script *script)
{
	return script->model->is_sampled &&
	       script->options->value < VALUE_CALLS &&
	       script->model->period_ns > 0;
}

static void put_samples(struct script *script, uint32_t number, uint64_t count)
{
	const uint64_t period = whole(script->model->period_ns);
	uint64_t sum;

	for (; count > 0 && script->samples < SAMPLES_MAX; count--) {
		put_event(script, number, period);
		script->samples++;
	}
	if (count == 0)
		return;
	if (__builtin_mul_overflow(count, period, &sum))
		sum = UINT64_MAX;
	put_event(script, number, sum);
	script->summed += count;
}

/* An event for each sample, or one with the sum. */
static void put_events(struct script *script, uint32_t number, uint64_t value)
{
	if (is_samples(script))
		put_samples(script, number, value);
	else if (value > 0)
		put_event(script, number, value);
}

static bool enter_path(void *context, uint32_t number, uint32_t depth)
{
	struct script *script = context;
	const struct model *model = script->model;
	uint64_t value;

	progress("writing", script->paths_done++, model->path_count);
	if (model->paths[number].function == NONE)
		return true;
	value = is_samples(script) ? model->paths[number].own :
				     period_of(script, number);
	if (depth <= script->options->max_depth) {
		put_events(script, number, value);
	} else {
		script->deeper += value;
		script->cut++;
	}
	return true;
}

/* A path beyond --max-depth counts for its ancestor at that depth. */
static void leave_path(void *context, uint32_t number, uint32_t depth)
{
	struct script *script = context;

	if (depth != script->options->max_depth)
		return;
	put_events(script, number, script->deeper);
	script->deeper = 0;
}

static void perf_script_print(FILE *out, struct model *model,
			      const struct options *options)
{
	struct script script = { .out = out,
				 .model = model,
				 .options = options };
	struct walk walk = { enter_path, leave_path, &script };
	uint32_t i;

	for (i = 0; i < model->thread_count; i++) {
		script.thread = &model->threads[i];
		script.now_ns = 0;
		if (script.thread->path != NONE)
			model_walk(model, script.thread->path, &walk);
	}
	progress_end();
	if (script.cut)
		warn("%" PRIu64 " paths deeper than %u frames are in the "
		     "events of their ancestors at that depth (--max-depth)",
		     script.cut, options->max_depth);
	if (script.summed)
		warn("%" PRIu64 " samples, those behind the first %u, are in "
		     "events of all samples of their paths",
		     script.summed, SAMPLES_MAX);
}

EXPORT_FORMAT(perf_script) = {
	.name = "perf-script",
	.extension = "perf.txt",
	.description = "text of perf script, for tools that read it",
	.values = VALUES_OF_CALLS | VALUES_OF_MEMORY,
	.has_threads_always = true,
	.may_have_lines = true,
	/* Each path is written whole. */
	.max_depth = 1024,
	.print = perf_script_print,
};
