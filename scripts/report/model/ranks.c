/*
 * Measures how evenly the parts of a job share its work: ranks, merged
 * recordings, or the processes of one recording.  All parts wait for the time
 * by which the slowest exceeds the mean.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/names.h"
#include "model/model.h"
#include "model/ranks.h"
#include "model/reduction.h"
#include "model/selftime.h"
#include "model/totals.h"
#include "read/process.h"
#include "read/recording.h"

static const char *name_of(const struct recording *recording,
			   const struct process *process)
{
	const char *part = recording->parts[process->part].name;

	return recording->part_count > 1 && part ? part : process->name;
}

static void find_ranks(struct ranks *ranks)
{
	struct model *model = ranks->model;
	const struct recording *recording = model->recording;
	struct names names = { 0 };
	uint32_t i;

	ranks->of_thread = allocate(model->thread_count,
				    sizeof(*ranks->of_thread));
	for (i = 0; i < model->thread_count; i++)
		ranks->of_thread[i] = names_add(
			&names,
			name_of(recording,
				&recording->processes[model->threads[i]
							      .process]));
	ranks->count = names.count;
	ranks->names = allocate(names.count, sizeof(*ranks->names));
	for (i = 0; i < names.count; i++)
		ranks->names[i] = names.text[i];
	names_free(&names);
}

static const struct rank_row no_row = { .first = NONE, .last = NONE };

/* Threads and paths come rank by rank. */
static void add_figure(struct ranks *ranks, struct rank_row *row, uint32_t rank,
		       double value)
{
	if (row->last != NONE && ranks->figures[row->last].rank == rank) {
		ranks->figures[row->last].value += value;
		return;
	}
	GROW(ranks->figures, ranks->figure_count, ranks->figure_room);
	ranks->figures[ranks->figure_count] = (struct rank_figure){ rank, NONE,
								    value };
	if (row->last == NONE)
		row->first = ranks->figure_count;
	else
		ranks->figures[row->last].next = ranks->figure_count;
	row->last = ranks->figure_count++;
	row->count++;
}

static void add_doubt(struct rank_row *row, const struct missing *missing,
		      double tick)
{
	row->has_estimate |= missing->is_estimate;
	row->has_unknown |= missing->is_unknown;
	row->tick = fmax(row->tick, tick);
}

static void see_figure(struct rank_row *row, uint32_t rank, double value)
{
	if (value < row->least) {
		row->least = value;
		row->least_rank = rank;
	}
	if (value > row->most) {
		row->most = value;
		row->most_rank = rank;
	}
}

/* Considers the first rank, then the ranks with a figure, and then the first
 * rank without one. */
static void measure_row(const struct ranks *ranks, struct rank_row *row)
{
	uint32_t i = row->first, missing = 0;

	if (ranks->count == 0)
		return;
	if (i != NONE && ranks->figures[i].rank == 0)
		row->least = row->most = ranks->figures[i].value;
	for (; i != NONE; i = ranks->figures[i].next) {
		const struct rank_figure *figure = &ranks->figures[i];

		row->mean += figure->value / ranks->count;
		if (missing < figure->rank)
			see_figure(row, missing, 0);
		see_figure(row, figure->rank, figure->value);
		missing = figure->rank + 1;
	}
	if (missing < ranks->count)
		see_figure(row, missing, 0);
}

/* In percent of the mean: the slowest rank's time that a perfect distribution
 * would save. */
double ranks_imbalance(const struct rank_row *row)
{
	return row->mean > 0 ? fmax(100 * (row->most / row->mean - 1), 0) : 0;
}

static void add_functions(struct ranks *ranks)
{
	struct model *model = ranks->model;
	struct part_sums part;
	uint32_t i, n;

	ranks->functions = allocate(model->function_count,
				    sizeof(*ranks->functions));
	for (i = 0; i < model->function_count; i++)
		ranks->functions[i] = no_row;
	part_sums_begin(&part, model);
	for (n = 0; n < model->thread_count; n++) {
		uint32_t rank = ranks->of_thread[n];

		part_sums_of(&part, model, model->threads[n].path);
		for (i = 0; i < part.count; i++) {
			uint32_t function = part.functions[i];
			const struct sums *sums = &part.sums[function];

			add_figure(ranks, &ranks->functions[function], rank,
				   ranks->is_timed ? sums->self :
						     (double)sums->calls);
			ranks->functions[function].calls += sums->calls;
			add_doubt(&ranks->functions[function], &sums->missing,
				  sums->tick);
			ranks->all.tick = fmax(ranks->all.tick, sums->tick);
		}
		ranks->all.calls += model->threads[n].calls;
		add_figure(ranks, &ranks->all, rank,
			   ranks->is_timed ?
				   model->paths[model->threads[n].path].total :
				   (double)model->threads[n].calls);
	}
	for (i = 0; i < model->function_count; i++)
		measure_row(ranks, &ranks->functions[i]);
	measure_row(ranks, &ranks->all);
	part_sums_end(&part);
}

static uint32_t find_path(struct ranks *ranks, struct map *path_by_key,
			  uint32_t parent, uint32_t function)
{
	uint32_t number = map_add(path_by_key,
				  (uint64_t)parent << 32 | function,
				  ranks->path_count);

	if (number < ranks->path_count)
		return number;
	GROW(ranks->parent, ranks->path_count, ranks->parent_room);
	GROW(ranks->function, ranks->path_count, ranks->function_room);
	GROW(ranks->paths, ranks->path_count, ranks->path_room);
	ranks->parent[number] = parent;
	ranks->function[number] = function;
	ranks->paths[number] = no_row;
	return ranks->path_count++;
}

static void reduced_paths(struct ranks *ranks,
			  const struct reduction *reduction);

/* The model has a tree for each thread; this makes one tree. */
void ranks_add_paths(struct ranks *ranks)
{
	struct model *model = ranks->model;
	struct map path_by_key = { 0 };
	uint32_t *joint, i;

	if (model->reduction) {
		reduced_paths(ranks, model->reduction);
		return;
	}
	joint = allocate(model->path_count, sizeof(*joint));
	find_path(ranks, &path_by_key, NONE - 1, NONE - 1);
	for (i = 1; i < model->path_count; i++) {
		const struct path *path = &model->paths[i];
		struct rank_row *row;

		if (path->function == NONE)
			continue; /* a thread's root: 0 */
		joint[i] = find_path(ranks, &path_by_key, joint[path->parent],
				     path->function);
		row = &ranks->paths[joint[i]];
		add_figure(ranks, row, ranks->of_thread[path->thread],
			   ranks->is_timed ? path->total : (double)path->calls);
		row->calls += path->calls;
		add_doubt(row, &path->missing, path->self_tick);
	}
	for (i = 0; i < ranks->path_count; i++)
		measure_row(ranks, &ranks->paths[i]);
	map_free(&path_by_key);
	free(joint);
}

/* --- from a reduction --- */

/* Figures to sort: a function by its number in the model, and a rank. */
struct placed_figure {
	uint32_t function, rank;
	double value;
};

static int compare_placed(const void *left, const void *right)
{
	const struct placed_figure *a = left, *b = right;

	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static void place_figures(struct ranks *ranks,
			  const struct reduction *reduction)
{
	const struct site *sites = ranks->model->recording->sites;
	struct placed_figure *placed = allocate(reduction->figure_count,
						sizeof(*placed));
	double *each = allocate(ranks->count, sizeof(*each));
	struct self_choices choices;
	uint32_t i;

	selftime_begin(&choices, ranks->model);
	for (i = 0; i < reduction->figure_count; i++) {
		const struct reduced_figure *figure = &reduction->figures[i];
		uint32_t function = sites[figure->function].function;

		placed[i] = (struct placed_figure){
			function, figure->rank,
			ranks->is_timed ? selftime_of(&choices, function,
						      &figure->parts) :
					  (double)figure->calls
		};
		each[figure->rank] += placed[i].value;
		placed[i].value = fmax(placed[i].value, 0);
	}
	selftime_end(&choices);
	/* As that of a thread, a rank's time is not negative. */
	for (i = 0; i < ranks->count; i++)
		add_figure(ranks, &ranks->all, i, fmax(each[i], 0));
	free(each);
	if (reduction->figure_count)
		qsort(placed, reduction->figure_count, sizeof(*placed),
		      compare_placed);
	for (i = 0; i < reduction->figure_count; i++)
		add_figure(ranks, &ranks->functions[placed[i].function],
			   placed[i].rank, placed[i].value);
	free(placed);
}

static void reduced_functions(struct ranks *ranks,
			      const struct reduction *reduction)
{
	const struct model *model = ranks->model;
	uint32_t i;

	ranks->functions = allocate(model->function_count,
				    sizeof(*ranks->functions));
	for (i = 0; i < model->function_count; i++)
		ranks->functions[i] = no_row;
	place_figures(ranks, reduction);
	for (i = 0; i < reduction->function_count; i++) {
		const struct reduced_function *function =
			&reduction->functions[i];
		struct rank_row *row =
			&ranks->functions[model->recording->sites[i].function];

		row->calls += function->calls;
		row->tick = fmax(row->tick, function->tick);
	}
	ranks->all.tick = reduction->sums.tick;
	ranks->all.calls = model->calls;
	for (i = 0; i < model->function_count; i++)
		measure_row(ranks, &ranks->functions[i]);
	measure_row(ranks, &ranks->all);
}

static void add_spread(struct rank_row *row, const struct rank_spread *spread)
{
	row->tick = fmax(row->tick, spread->tick);
	if (spread->count && spread->most > row->most) {
		row->most = spread->most;
		row->most_rank = spread->most_rank;
	}
	if (spread->count == 0)
		return;
	row->least = spread->missing != NONE ? fmin(spread->least, 0) :
					       spread->least;
	row->least_rank = row->least < spread->least ? spread->missing :
						       spread->least_rank;
}

/* The least and most are those that the ranks have alone, where our own cost may
 * have been judged in another way. */
static void measure_spread(struct rank_row *row, double sum, uint32_t ranks)
{
	row->mean = sum / ranks;
	row->least = fmin(row->least, row->mean);
	row->most = fmax(row->most, row->mean);
}

/* The model's paths are of all ranks already. */
static void reduced_paths(struct ranks *ranks,
			  const struct reduction *reduction)
{
	const struct model *model = ranks->model;
	uint32_t *numbers = allocate(reduction->path_count, sizeof(*numbers));
	const struct site *sites = model->recording->sites;
	struct map path_by_key = { 0 };
	uint32_t i;

	for (i = 0; i < reduction->path_count; i++) {
		const struct reduced_path *reduced = &reduction->paths[i];
		const struct path *path = &reduced->path;
		struct rank_row *row;

		numbers[i] = i == 0 ? find_path(ranks, &path_by_key, NONE - 1,
						NONE - 1) :
				      find_path(ranks, &path_by_key,
						numbers[path->parent],
						sites[path->function].function);
		row = &ranks->paths[numbers[i]];
		row->calls += path->calls;
		add_spread(row, &reduced->spread);
	}
	/* The model has the same paths in the same order. */
	for (i = 0; i < ranks->path_count && i < model->path_count; i++)
		measure_spread(&ranks->paths[i],
			       ranks->is_timed ? model->paths[i].total :
						 (double)model->paths[i].calls,
			       ranks->count);
	map_free(&path_by_key);
	free(numbers);
}

static void reduced_collect(struct ranks *ranks,
			    const struct reduction *reduction)
{
	uint32_t i;

	ranks->count = reduction->rank_count;
	ranks->names = allocate(ranks->count, sizeof(*ranks->names));
	for (i = 0; i < ranks->count; i++)
		ranks->names[i] = reduction->ranks[i].name;
	reduced_functions(ranks, reduction);
}

void ranks_collect(struct ranks *ranks, struct model *model)
{
	*ranks = (struct ranks){ .model = model,
				 .is_timed = model->has_times,
				 .all = no_row };
	if (model->reduction) {
		reduced_collect(ranks, model->reduction);
		return;
	}
	find_ranks(ranks);
	add_functions(ranks);
}
