/*
 * Builds the model of a job from its reduction: the processes of the recording get what
 * only the trees of the ranks have.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "model/model.h"
#include "model/options.h"
#include "model/reduction.h"
#include "read/process.h"
#include "read/recording.h"

/* Finds processes by name. */
struct finder {
	struct names names;
	uint32_t *numbers;
};

static struct finder begin_finder(const struct recording *recording)
{
	struct finder finder = { .numbers = NULL };
	uint32_t i, number;

	finder.numbers = allocate(recording->process_count,
				  sizeof(*finder.numbers));
	for (i = 0; i < recording->process_count; i++) {
		number = names_add(&finder.names, recording->processes[i].name);
		finder.numbers[number] = i;
	}
	return finder;
}

static struct process *find_process(const struct finder *finder,
				    const struct recording *recording,
				    const char *name, uint32_t *number)
{
	uint32_t found = names_find(&finder->names, name);

	if (found == NONE)
		die("%s: its files changed while they were read",
		    recording->path);
	*number = finder->numbers[found];
	return &recording->processes[*number];
}

static void give_sites(struct recording *recording,
		       const struct reduction *reduction,
		       const struct finder *finder)
{
	uint32_t i;

	recording->sites = allocate(reduction->function_count,
				    sizeof(*recording->sites));
	recording->site_count = reduction->function_count;
	for (i = 0; i < reduction->function_count; i++) {
		const struct reduced_function *function =
			&reduction->functions[i];
		struct site *site = &recording->sites[i];

		*site = (struct site){
			.address = function->address,
			.generation = function->generation,
			.group = function->group,
			.has_hooks = function->has_hooks,
		};
		find_process(finder, recording, function->process,
			     &site->process);
	}
}

static void give_processes(struct recording *recording,
			   const struct reduction *reduction,
			   const struct finder *finder)
{
	uint32_t i, number;

	for (i = 0; i < reduction->process_count; i++) {
		const struct reduced_process *reduced =
			&reduction->processes[i];
		struct process *process = find_process(finder, recording,
						       reduced->name, &number);

		process->end_clock = reduced->end_clock;
		process->latest_clock = reduced->latest_clock;
		process->end_source = reduced->end_source;
	}
}

static void give_threads(struct model *model, const struct reduction *reduction,
			 const struct finder *finder)
{
	uint32_t i;

	for (i = 0; i < reduction->thread_count; i++) {
		struct thread thread = reduction->threads[i].thread;

		find_process(finder, model->recording,
			     reduction->threads[i].process, &thread.process);
		thread.path = 0;
		GROW(model->threads, model->thread_count, model->thread_room);
		model->threads[model->thread_count++] = thread;
	}
}

/* Functions that are equal by name have one number now, and so have paths. */
static void give_paths(struct model *model, const struct reduction *reduction)
{
	uint32_t *numbers = allocate(reduction->path_count, sizeof(*numbers));
	const struct site *sites = model->recording->sites;
	struct map paths = { 0 };
	uint32_t i, number, function;

	reduction_sum_path(&model->paths[0], &reduction->paths[0].path);
	for (i = 1; i < reduction->path_count; i++) {
		const struct path *path = &reduction->paths[i].path;

		function = sites[path->function].function;
		number = map_add(&paths,
				 (uint64_t)numbers[path->parent] << 32 |
					 function,
				 model->path_count);
		if (number == model->path_count)
			model_add_path(model, numbers[path->parent], function,
				       NONE);
		reduction_sum_path(&model->paths[number], path);
		numbers[i] = number;
	}
	map_free(&paths);
	free(numbers);
}

static void give_histograms(struct model *model,
			    const struct reduction *reduction)
{
	uint32_t i, k;

	for (i = 0; i < reduction->function_count; i++) {
		const uint64_t *histogram = reduction->functions[i].histogram;
		struct function *function =
			&model->functions[model->recording->sites[i].function];

		if (!histogram)
			continue;
		if (!function->histogram)
			function->histogram = allocate(SHIM_BUCKETS,
						       sizeof(uint64_t));
		for (k = 0; k < SHIM_BUCKETS; k++)
			function->histogram[k] += histogram[k];
	}
}

void reduction_build(struct model *model, const struct reduction *reduction,
		     struct recording *recording, const struct options *options)
{
	const struct reduced_sums *sums = &reduction->sums;
	struct finder finder = begin_finder(recording);
	uint32_t i;

	for (i = 0; i < reduction->warnings.count; i++)
		warn("%s", reduction->warnings.text[i]);
	free(recording->sites);
	give_sites(recording, reduction, &finder);
	give_processes(recording, reduction, &finder);
	model_begin(model, recording, options, false, false);
	model->reduction = reduction;
	model->bucket_ns = sums->bucket_ns;
	model->calls = sums->calls;
	model->open = sums->open;
	model->older = sums->older;
	model->lost = sums->lost;
	model->orphans = sums->orphans;
	model->unwound = sums->unwound;
	model->damaged = sums->damaged;
	model->open_until_when = sums->open_until_when;
	memcpy(model->lost_causes, sums->lost_causes,
	       sizeof(sums->lost_causes));
	memcpy(model->lost_others, sums->lost_others,
	       sizeof(sums->lost_others));
	model->has_extras = sums->has_extras;
	model->has_errors = sums->has_errors;
	give_threads(model, reduction, &finder);
	give_paths(model, reduction);
	give_histograms(model, reduction);
	model_measure(model);
	names_free(&finder.names);
	free(finder.numbers);
}
