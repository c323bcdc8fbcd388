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
	return row->mean > 0 ? 100 * (row->most / row->mean - 1) : 0;
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

/* The model has a tree for each thread; this makes one tree. */
void ranks_add_paths(struct ranks *ranks)
{
	struct model *model = ranks->model;
	uint32_t *joint = allocate(model->path_count, sizeof(*joint));
	struct map path_by_key = { 0 };
	uint32_t i;

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

void ranks_collect(struct ranks *ranks, struct model *model)
{
	*ranks = (struct ranks){ .model = model,
				 .is_timed = model->has_times,
				 .all = no_row };
	find_ranks(ranks);
	add_functions(ranks);
}
