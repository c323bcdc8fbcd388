/*
 * Chooses the contents of a report without options: calls or samples, or the
 * calls of a trace; and the tables of memory, locks and exceptions if these
 * were recorded.
 */
#include <stdbool.h>
#include <stdint.h>
#include <shim/format.h>

#include "base/messages.h"
#include "model/choose.h"
#include "model/coverage.h"
#include "model/functions.h"
#include "model/model.h"
#include "model/options.h"
#include "model/shown.h"
#include "model/window.h"
#include "read/process.h"
#include "read/recording.h"
#include "trace/trace.h"
#include "trace/tree.h"

/* Finds out whether there are files of calls, and of samples. */
static void find_kinds(const struct recording *recording, bool *calls,
		       bool *samples)
{
	uint32_t i, n;

	*calls = *samples = false;
	for (i = 0; i < recording->process_count; i++)
		for (n = 0; n < recording->processes[i].file_count; n++)
			*(recording->processes[i].files[n].is_sampled ?
				  samples :
				  calls) = true;
}

/* Whether threads that got no file have lost calls. */
static bool has_lost_calls(const struct recording *recording)
{
	uint32_t i, n, cause;

	for (i = 0; i < recording->process_count; i++) {
		const struct shim_meta *meta = &recording->processes[i].meta;

		if (!meta_counts_calls_apart(meta))
			continue;
		for (n = 0; n < SHIM_META_THREADS; n++)
			for (cause = 0; cause < SHIM_LOST_CAUSES; cause++)
				if (meta->lost[n].lost[cause])
					return true;
	}
	return false;
}

/* Reads the calls of traces that lie in the window. */
static void add_window(struct recording *recording,
		       const struct options *options)
{
	struct model model = { .recording = recording };
	struct trace_range range = { 0 };
	struct trace trace;

	if (trace_open(&trace, recording)) {
		if (options->has_window) {
			model_find_functions(&model);
			range = window_begin(&trace, &model, options, false);
		}
		range.doing = "adding up";
		trace_add_calls(&trace, &range);
		window_end(&range);
	}
	trace_close(&trace);
}

/* Whether a process of several, as in a merged recording, has its calls in a trace only. */
static bool is_traced_only(const struct recording *recording)
{
	uint32_t i;

	for (i = 0; i < recording->process_count; i++) {
		const struct process *process = &recording->processes[i];

		if (process_has_profile(process, "trace") &&
		    !process_has_calls(process))
			return true;
	}
	return false;
}

/* Reads the calls of traces, if calls were not counted or the user prefers the
 * trace. */
static void read_traces(struct recording *recording,
			const struct options *options, bool has_calls)
{
	bool is_wanted = options->trace || options->has_window;
	uint32_t i, n, kept;

	if (has_calls && !is_wanted && !is_traced_only(recording))
		return;
	if (is_wanted && !trace_is_there(recording))
		die("%s: there is no trace in it (profrun -p trace)",
		    recording->path);
	for (i = 0; i < recording->process_count && is_wanted; i++) {
		struct process *process = &recording->processes[i];

		for (n = kept = 0; n < process->file_count; n++)
			if (process->files[n].is_sampled)
				process->files[kept++] = process->files[n];
		process->file_count = kept;
		process_list_ranges(process);
	}
	recording->has_traced_calls = has_calls && is_wanted;
	add_window(recording, options);
}

/* Whether only samples were asked for: a program may end before the first. */
static bool is_for_samples(const struct recording *recording)
{
	static const char *const of_calls[] = { "calltree", "default",
						"trace" };
	const struct process *process = recording->processes;
	uint32_t i;

	for (i = 0; i < sizeof(of_calls) / sizeof(*of_calls); i++)
		if (process_has_profile(process, of_calls[i]))
			return false;
	return process_has_profile(process, "sampling");
}

/* Reads calls, or samples if there are no calls.  If there are both, @samples
 * (if not NULL) gets the samples. */
void choose_build(struct model *model, struct model *samples,
		  struct recording *recording, const struct options *options)
{
	bool has_calls, has_samples;

	find_kinds(recording, &has_calls, &has_samples);
	read_traces(recording, options, has_calls);
	find_kinds(recording, &has_calls, &has_samples);
	has_calls |= has_lost_calls(recording);
	has_samples |= !has_calls && is_for_samples(recording);
	if (options->samples && !has_samples &&
	    (has_calls || coverage_is_there(recording)))
		die("%s: no samples were recorded (profrun -p sampling)",
		    recording->path);
	model_build(model, recording, options,
		    options->threads || options->ranks,
		    has_samples && (options->samples || !has_calls));
	if (samples && has_samples && !model->is_sampled)
		model_build(samples, recording, options, false, true);
	shown_check(model);
}

void choose_read(struct model *model, struct model *samples,
		 struct recording *recording, const struct options *options,
		 const char *path)
{
	recording_open(recording, path ? path : recording_find(), options->pid);
	choose_build(model, samples, recording, options);
}

void model_read(struct model *model, struct recording *recording,
		const struct options *options, const char *path)
{
	choose_read(model, NULL, recording, options, path);
}

/* Ends with an error: what the user has asked for is in recordings of @profile only. */
static _Noreturn void die_without(const struct model *model, const char *what,
				  const char *profile)
{
	const char *path = model->recording->path;

	if (model->recording->has_traced_calls)
		die("%s: no %s are shown beside the calls of a trace: leave out "
		    "--trace",
		    path, what);
	die("%s: no %s were recorded (profrun -p %s)", path, what, profile);
}

/* Shows memory if the user asked for it, at record time or now. */
void choose_memory(const struct model *model, struct options *options)
{
	if (options->memory && !model->has_memory)
		die_without(model, "allocations", "memory");
	if (options->sort_given && options->sort >= SORT_BYTES)
		options->memory = model->has_memory;
	if (model->has_memory && !model->memory_has_calls &&
	    !(options->sort_given && options->sort < SORT_BYTES))
		options->memory = true;
	if (options->sort_given && options->sort >= SORT_BYTES &&
	    !options->memory)
		die("%s: no allocations were recorded to sort by",
		    model->recording->path);
}

/* Whether the user asked neither for calls nor for another table. */
static bool is_free(const struct model *model, const struct options *options)
{
	const struct process *process = model->recording->processes;

	return !options->memory && !options->locks && !options->exceptions &&
	       !options->sort_given &&
	       !process_has_profile(process, "calltree") &&
	       !process_has_profile(process, "default");
}

/* Shows waits if the user asked for them, at record time or now. */
void choose_locks(const struct model *model, struct options *options)
{
	if ((options->locks || options->value == VALUE_WAITS) && !model->locks)
		die_without(model, "locks", "locks");
	if (model->locks && is_free(model, options))
		options->locks = true;
}

/* The same for exceptions. */
void choose_exceptions(const struct model *model, struct options *options)
{
	if (options->exceptions && !model->exceptions)
		die_without(model, "exceptions", "exceptions");
	if (model->exceptions && is_free(model, options))
		options->exceptions = true;
}

/* A text report has room for a table of each. */
void choose_all(const struct model *model, struct options *options)
{
	if (!is_free(model, options))
		return;
	options->memory = model->has_memory;
	options->locks = model->locks != NULL;
	options->exceptions = model->exceptions != NULL;
}

/* The reason why rows cannot be sorted this way, or NULL. */
static const char *lack_for_sort(const struct model *model, enum sort sort)
{
	if (sort == SORT_CALLS || sort >= SORT_BYTES)
		return NULL;
	if (!model->has_times)
		return "calls were counted, not timed: --sort calls";
	if (model->is_sampled && (sort == SORT_MEAN || sort == SORT_MAX))
		return "samples do not tell how long calls took: --sort self, "
		       "total or calls";
	if (sort == SORT_MAX && !model->has_ranges)
		return "the longest calls are not known: record with "
		       "-p calltree:exact";
	return NULL;
}

void choose_check_sort(const struct model *model, const struct options *options)
{
	static const char *const names[] = {
		[SORT_SELF] = "self",
		[SORT_TOTAL] = "total",
		[SORT_MEAN] = "mean",
		[SORT_MAX] = "max",
	};
	const char *lack = options->sort_given ?
				   lack_for_sort(model, options->sort) :
				   NULL;

	if (lack && (model->calls || model->open))
		die("%s: --sort %s: %s", model->recording->path,
		    names[options->sort], lack);
}
