/*
 * Adds up the ranks of a job.  Each rank's model is built, added, measured for
 * the differences between ranks, and freed: at any time, one rank is in memory.
 * A function is the same in two ranks if it is at the same address in the same
 * object.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "model/functions.h"
#include "model/known_functions.h"
#include "model/model.h"
#include "model/options.h"
#include "model/reduction.h"
#include "model/totals.h"
#include "read/process.h"
#include "read/recording.h"

/* There is no NAN; a call of libm for each number of each path would take time. */
static double larger(double a, double b)
{
	return a > b ? a : b;
}

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

static uint32_t find_path(struct reduction *reduction, uint32_t parent,
			  uint32_t function, uint32_t guess)
{
	uint32_t number;

	if (guess < reduction->path_count &&
	    reduction->paths[guess].path.parent == parent &&
	    reduction->paths[guess].path.function == function)
		return guess;
	number = map_add(&reduction->path_by_key,
			 (uint64_t)parent << 32 | function,
			 reduction->path_count);
	if (number < reduction->path_count)
		return number;
	GROW(reduction->paths, reduction->path_count, reduction->path_room);
	reduction->paths[number] = (struct reduced_path){
		.path = { .parent = parent,
			  .place = NONE,
			  .function = function,
			  .child = NONE,
			  .sibling = NONE,
			  .thread = NONE,
			  .min = INFINITY,
			  .max = -INFINITY },
		.spread = { .least = INFINITY,
			    .most = -INFINITY,
			    .missing = NONE },
	};
	return reduction->path_count++;
}

void reduction_begin(struct reduction *reduction)
{
	*reduction = (struct reduction){ .sums = { .bucket_ns = 1 } };
	find_path(reduction, NONE, NONE, 0);
}

static void add_part(struct reduction *reduction, const char *name,
		     uint64_t identity)
{
	uint32_t number = names_add(&reduction->parts, name);

	GROW(reduction->part_identities, number, reduction->part_room);
	reduction->part_identities[number] = identity;
}

uint64_t *reduction_identities(const struct recording *recording)
{
	uint64_t *identities = allocate(recording->part_count,
					sizeof(*identities));
	uint32_t i;

	for (i = recording->process_count; i-- > 0;)
		if (recording->processes[i].has_meta)
			identities[recording->processes[i].part] =
				recording->processes[i].meta.start_real_ns;
	for (i = 0; i < recording->part_count; i++)
		identities[i] ^= recording->parts[i].end_mono_ns;
	return identities;
}

/* --- what can be reduced --- */

static bool has_calls_only(const struct tree_file *file)
{
	return !file->is_sampled && !file->memory_count && !file->heap &&
	       !file->points && !file->snapshot_count && !file->alive_count &&
	       !file->lock_count && !file->throw_count &&
	       !file->throttled_count && !file->counters;
}

static bool is_plain(const struct process *process)
{
	static const char *const others[] = { "trace", "sampling",   "memory",
					      "locks", "exceptions", "coverage",
					      "pchist" };
	uint32_t i;

	for (i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (process_has_profile(process, others[i]))
			return false;
	for (i = 0; i < process->file_count; i++)
		if (!has_calls_only(&process->files[i]))
			return false;
	return process->coverage_count == 0 && process->meta.budget == 0 &&
	       process->meta.sample_period_ns == 0;
}

static bool can_be_reduced(const struct recording *recording)
{
	uint32_t i;

	for (i = 0; i < recording->process_count; i++)
		if (!is_plain(&recording->processes[i]))
			return false;
	for (i = 0; i < recording->site_count; i++)
		if (recording->sites[i].is_frame)
			return false;
	return true;
}

/* --- sums --- */

static void add_self(struct self_seen *sum, const struct self_seen *self)
{
	sum->time += self->time;
	sum->variance += self->variance;
}

/* Before they are measured, the fields of paths are sums, maxima, or flags. */
void reduction_sum_path(struct path *sum, const struct path *path)
{
	sum->open += path->open;
	sum->older += path->older;
	sum->calls += path->calls;
	sum->untimed += path->untimed;
	sum->total += path->total;
	sum->total_raw += path->total_raw;
	sum->cost += path->cost;
	add_self(&sum->seen, &path->seen);
	add_self(&sum->exactly.seen, &path->exactly.seen);
	sum->exactly.raw += path->exactly.raw;
	sum->exactly.cost += path->exactly.cost;
	sum->exactly.child_variance += path->exactly.child_variance;
	sum->seen_tick = larger(sum->seen_tick, path->seen_tick);
	sum->seen_cost += path->seen_cost;
	sum->waited += path->waited;
	sum->waited_least = larger(sum->waited_least, path->waited_least);
	sum->raw_waited += path->raw_waited;
	sum->total_raw_waited += path->total_raw_waited;
	sum->has_waited |= path->has_waited;
	sum->unseen_calls += path->unseen_calls;
	sum->tick = larger(sum->tick, path->tick);
	sum->raw_variance += path->raw_variance;
	sum->min = smaller(sum->min, path->min);
	sum->max = larger(sum->max, path->max);
	sum->open_max = larger(sum->open_max, path->open_max);
	sum->is_timed |= path->is_timed;
	sum->has_no_range |= path->has_no_range;
}

static void add_histogram(struct reduced_function *function,
			  const uint64_t *histogram)
{
	uint32_t i;

	if (!histogram)
		return;
	if (!function->histogram)
		function->histogram = allocate(SHIM_BUCKETS, sizeof(uint64_t));
	for (i = 0; i < SHIM_BUCKETS; i++)
		function->histogram[i] += histogram[i];
}

static void add_causes(uint64_t sum[SHIM_LOST_CAUSES],
		       const uint64_t lost[SHIM_LOST_CAUSES])
{
	uint32_t i;

	for (i = 0; i < SHIM_LOST_CAUSES; i++)
		sum[i] += lost[i];
}

static void add_sums(struct reduced_sums *sums, const struct reduced_sums *more)
{
	uint32_t i;

	sums->tick = larger(sums->tick, more->tick);
	sums->calls += more->calls;
	sums->open += more->open;
	sums->older += more->older;
	sums->lost += more->lost;
	sums->orphans += more->orphans;
	sums->unwound += more->unwound;
	sums->damaged += more->damaged;
	sums->open_until_when += more->open_until_when;
	add_causes(sums->lost_causes, more->lost_causes);
	for (i = 0; i < SHIM_LOST_KINDS; i++)
		add_causes(sums->lost_others[i], more->lost_others[i]);
	sums->has_extras |= more->has_extras;
	sums->has_errors |= more->has_errors;
	sums->has_times |= more->has_times;
	sums->has_untimed_ranks |= more->has_untimed_ranks;
}

/* --- functions --- */

/* Returns the number of the function with @key, which takes @function if it is
 * new. */
static uint32_t find_function(struct reduction *reduction,
			      const struct reduced_function *function)
{
	uint32_t number = names_find(&reduction->keys, function->key);

	if (number != NONE)
		return number;
	number = names_add(&reduction->keys,
			   keep_text(function->key, SIZE_MAX));
	GROW(reduction->functions, reduction->function_count,
	     reduction->function_room);
	reduction->functions[number] = *function;
	reduction->functions[number].key = reduction->keys.text[number];
	reduction->functions[number].histogram = NULL;
	reduction->functions[number].calls = 0;
	reduction->functions[number].tick = 0;
	return reduction->function_count++;
}

/* A function in no object is one of its process.  free() it. */
static char *key_of(const struct function *function, const char *process)
{
	char *key;

	if (asprintf(&key, "%s/%" PRIx64 "/%s",
		     function->object ? function->object->key : process,
		     function->address,
		     function->group ? function->group : "") < 0)
		die("out of memory");
	return key;
}

/* The functions of a rank's model get their numbers in the reduction. */
static uint32_t *find_functions(struct reduction *reduction,
				const struct model *model,
				const char *const *processes)
{
	const struct recording *recording = model->recording;
	uint32_t *numbers = allocate(model->function_count, sizeof(*numbers));
	uint32_t i;

	for (i = 0; i < model->function_count; i++)
		numbers[i] = NONE;
	for (i = 0; i < recording->site_count; i++) {
		const struct site *site = &recording->sites[i];
		const struct function *function =
			&model->functions[site->function];
		const char *process = processes[site->process];
		char *key;

		if (numbers[site->function] != NONE)
			continue;
		key = key_of(function, process);
		numbers[site->function] = find_function(
			reduction, &(struct reduced_function){
					   .process = process,
					   .group = site->group,
					   .address = site->address,
					   .generation = site->generation,
					   .has_hooks = site->has_hooks,
					   .key = key,
				   });
		free(key);
	}
	return numbers;
}

/* --- a rank --- */

static void add_processes(struct reduction *reduction,
			  const struct recording *recording,
			  const char *const *names)
{
	uint32_t i;

	for (i = 0; i < recording->process_count; i++) {
		const struct process *process = &recording->processes[i];

		GROW(reduction->processes, reduction->process_count,
		     reduction->process_room);
		reduction->processes[reduction->process_count++] =
			(struct reduced_process){
				.name = names[i],
				.end_clock = process->end_clock,
				.latest_clock = process->latest_clock,
				.end_source = process->end_source,
			};
	}
}

static void add_threads(struct reduction *reduction, const struct model *model,
			const char *const *processes)
{
	uint32_t i;

	for (i = 0; i < model->thread_count; i++) {
		const struct thread *thread = &model->threads[i];

		GROW(reduction->threads, reduction->thread_count,
		     reduction->thread_room);
		reduction->threads[reduction->thread_count++] =
			(struct reduced_thread){ processes[thread->process],
						 *thread };
	}
}

/* Returns the numbers of the paths in the reduction. */
static uint32_t *add_paths(struct reduction *reduction,
			   const struct model *model, const uint32_t *functions)
{
	uint32_t *numbers = allocate(model->path_count, sizeof(*numbers)), i;

	for (i = 0; i < model->path_count; i++) {
		const struct path *path = &model->paths[i];

		numbers[i] = i == 0 ?
				     0 :
				     find_path(reduction, numbers[path->parent],
					       functions[path->function],
					       numbers[i - 1] + 1);
		reduction_sum_path(&reduction->paths[numbers[i]].path, path);
	}
	return numbers;
}

/* @rank is the last one. */
static void add_to_spread(struct rank_spread *spread, uint32_t rank,
			  double value, double tick)
{
	/* It was in the ranks 0 to count - 1. */
	if (spread->missing == NONE && spread->count < rank)
		spread->missing = spread->count;
	spread->count++;
	spread->tick = larger(spread->tick, tick);
	if (value < spread->least) {
		spread->least = value;
		spread->least_rank = rank;
	}
	if (value > spread->most) {
		spread->most = value;
		spread->most_rank = rank;
	}
}

static struct self_parts *collect_parts(const struct model *model)
{
	struct self_parts *parts = allocate(model->function_count,
					    sizeof(*parts));
	uint32_t i;

	for (i = 1; i < model->path_count; i++)
		selftime_add(&parts[model->paths[i].function],
			     &model->paths[i]);
	return parts;
}

static void add_figures(struct reduction *reduction, const struct model *model,
			const uint32_t *functions, uint32_t rank)
{
	struct self_parts *parts = collect_parts(model);
	uint32_t i;

	for (i = 0; i < model->function_count; i++) {
		const struct sums *sums = &model->functions[i].sums;
		struct reduced_function *function;

		if (functions[i] == NONE)
			continue;
		function = &reduction->functions[functions[i]];
		add_histogram(function, model->functions[i].histogram);
		function->calls += sums->calls;
		function->tick = larger(function->tick, sums->tick);
		reduction->sums.tick = larger(reduction->sums.tick, sums->tick);
		if (!sums_are_there(sums))
			continue;
		GROW(reduction->figures, reduction->figure_count,
		     reduction->figure_room);
		reduction->figures[reduction->figure_count++] =
			(struct reduced_figure){ functions[i], rank,
						 sums->calls, parts[i] };
	}
	free(parts);
}

/* The times of a rank, which was measured. */
static void add_measured(struct reduction *reduction, const struct model *model,
			 const uint32_t *functions, const uint32_t *paths,
			 const char *name)
{
	uint32_t rank = reduction->rank_count, i;

	if (model->thread_count == 0)
		return;
	GROW(reduction->ranks, reduction->rank_count, reduction->rank_room);
	reduction->ranks[reduction->rank_count++] = (struct reduced_rank){
		name, model->calls
	};
	for (i = 1; i < model->path_count; i++) {
		const struct path *path = &model->paths[i];

		add_to_spread(&reduction->paths[paths[i]].spread, rank,
			      model->has_times ? path->total :
						 (double)path->calls,
			      path->self_tick);
	}
	add_figures(reduction, model, functions, rank);
	reduction->sums.has_times |= model->has_times;
	reduction->sums.has_untimed_ranks |= !model->has_times &&
					     model->calls > 0;
}

static const char **name_processes(const struct recording *recording,
				   const char *name)
{
	const char **names = allocate(recording->process_count, sizeof(*names));
	uint32_t i;

	for (i = 0; i < recording->process_count; i++)
		names[i] = keep_format("%s/%s", name,
				       recording->processes[i].name);
	return names;
}

static void add_model(struct reduction *reduction, struct model *model,
		      const char *name)
{
	const char **processes = name_processes(model->recording, name);
	uint32_t *functions = find_functions(reduction, model, processes);
	uint32_t *paths;
	struct reduced_sums sums = {
		.calls = model->calls,
		.open = model->open,
		.older = model->older,
		.lost = model->lost,
		.orphans = model->orphans,
		.unwound = model->unwound,
		.damaged = model->damaged,
		.open_until_when = model->open_until_when,
		.has_extras = model->has_extras,
		.has_errors = model->has_errors,
	};

	memcpy(sums.lost_causes, model->lost_causes, sizeof(sums.lost_causes));
	memcpy(sums.lost_others, model->lost_others, sizeof(sums.lost_others));
	add_sums(&reduction->sums, &sums);
	if (reduction->parts.count == 1)
		reduction->sums.bucket_ns = model->bucket_ns;
	add_processes(reduction, model->recording, processes);
	add_threads(reduction, model, processes);
	paths = add_paths(reduction, model, functions);
	model_measure(model);
	add_measured(reduction, model, functions, paths, name);
	free(functions);
	free(paths);
	free(processes);
}

bool reduction_add(struct reduction *reduction, const char *path,
		   const char *name)
{
	static const struct options options = { .limit = -1 };
	struct recording recording;
	uint64_t *identities;
	struct model model;
	size_t i;

	known_functions_begin();
	recording_open(&recording, path, 0);
	if (!can_be_reduced(&recording)) {
		recording_free(&recording);
		return false;
	}
	identities = reduction_identities(&recording);
	add_part(reduction, name, identities[0]);
	free(identities);
	model_begin(&model, &recording, &options, false, false);
	model_add_up(&model);
	add_model(reduction, &model, name);
	model_free(&model);
	recording_free(&recording);
	for (i = 0; i < warning_count(); i++)
		names_add(&reduction->warnings, warning_text(i));
	return true;
}

/* --- two reductions --- */

static void join_spread(struct rank_spread *sum, const struct rank_spread *more,
			uint32_t ranks_before)
{
	if (sum->missing == NONE && sum->count < ranks_before)
		sum->missing = sum->count;
	if (sum->missing == NONE && more->missing != NONE)
		sum->missing = ranks_before + more->missing;
	sum->count += more->count;
	sum->tick = larger(sum->tick, more->tick);
	if (more->least < sum->least) {
		sum->least = more->least;
		sum->least_rank = ranks_before + more->least_rank;
	}
	if (more->most > sum->most) {
		sum->most = more->most;
		sum->most_rank = ranks_before + more->most_rank;
	}
}

static void join_paths(struct reduction *reduction,
		       const struct reduction *other, const uint32_t *functions)
{
	uint32_t *numbers = allocate(other->path_count, sizeof(*numbers)), i;
	uint32_t before = reduction->rank_count;

	for (i = 0; i < other->path_count; i++) {
		const struct reduced_path *path = &other->paths[i];
		struct reduced_path *sum;

		numbers[i] = i == 0 ? 0 :
				      find_path(reduction,
						numbers[path->path.parent],
						functions[path->path.function],
						numbers[i - 1] + 1);
		sum = &reduction->paths[numbers[i]];
		reduction_sum_path(&sum->path, &path->path);
		join_spread(&sum->spread, &path->spread, before);
	}
	free(numbers);
}

static void join_functions(struct reduction *reduction,
			   const struct reduction *other, uint32_t *numbers)
{
	uint32_t i;

	for (i = 0; i < other->function_count; i++) {
		const struct reduced_function *more = &other->functions[i];
		struct reduced_function *function;

		numbers[i] = find_function(reduction, more);
		function = &reduction->functions[numbers[i]];
		add_histogram(function, more->histogram);
		function->calls += more->calls;
		function->tick = larger(function->tick, more->tick);
		function->has_hooks |= more->has_hooks;
	}
}

#define APPEND(reduction, other, array, count, room) \
	do { \
		uint32_t at; \
		for (at = 0; at < (other)->count; at++) { \
			GROW((reduction)->array, (reduction)->count, \
			     (reduction)->room); \
			(reduction)->array[(reduction)->count++] = \
				(other)->array[at]; \
		} \
	} while (0)

void reduction_join(struct reduction *reduction, const struct reduction *other)
{
	uint32_t *functions = allocate(other->function_count,
				       sizeof(*functions));
	uint32_t before = reduction->rank_count, i;

	join_functions(reduction, other, functions);
	join_paths(reduction, other, functions);
	for (i = 0; i < other->figure_count; i++) {
		struct reduced_figure figure = other->figures[i];

		figure.function = functions[figure.function];
		figure.rank += before;
		GROW(reduction->figures, reduction->figure_count,
		     reduction->figure_room);
		reduction->figures[reduction->figure_count++] = figure;
	}
	APPEND(reduction, other, ranks, rank_count, rank_room);
	APPEND(reduction, other, processes, process_count, process_room);
	APPEND(reduction, other, threads, thread_count, thread_room);
	if (reduction->parts.count == 0)
		reduction->sums.bucket_ns = other->sums.bucket_ns;
	for (i = 0; i < other->parts.count; i++)
		if (names_find(&reduction->parts, other->parts.text[i]) == NONE)
			add_part(reduction, other->parts.text[i],
				 other->part_identities[i]);
	for (i = 0; i < other->warnings.count; i++)
		names_add(&reduction->warnings, other->warnings.text[i]);
	add_sums(&reduction->sums, &other->sums);
	free(functions);
}

void reduction_end(struct reduction *reduction)
{
	uint32_t i;

	for (i = 0; i < reduction->path_count; i++) {
		struct rank_spread *spread = &reduction->paths[i].spread;

		if (spread->missing == NONE &&
		    spread->count < reduction->rank_count)
			spread->missing = spread->count;
	}
}

void reduction_free(struct reduction *reduction)
{
	uint32_t i;

	for (i = 0; i < reduction->function_count; i++)
		free(reduction->functions[i].histogram);
	free(reduction->part_identities);
	free(reduction->ranks);
	free(reduction->processes);
	free(reduction->threads);
	free(reduction->functions);
	free(reduction->paths);
	free(reduction->figures);
	map_free(&reduction->path_by_key);
	names_free(&reduction->keys);
	names_free(&reduction->parts);
	names_free(&reduction->warnings);
}
