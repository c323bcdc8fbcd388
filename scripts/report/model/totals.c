/*
 * Computes totals, self times and sums.  A path's self time is its total minus
 * its children's totals; selftime.c separates the program's part.  Totals are
 * then added up again from self times, so the sums agree at every level.
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "model/bounds.h"
#include "model/budget.h"
#include "model/model.h"
#include "model/selftime.h"
#include "model/shown.h"
#include "model/totals.h"

/*
 * The minimum and maximum of a path's calls, minus the average cost of
 * recording a call.  An open call counts with its duration so far: it may be
 * the longest, and if it is the only one, nothing else is known.
 */
static void measure_range(struct path *path)
{
	double cost = path->calls ? (path->total_raw - path->total) /
					    (double)path->calls :
				    0;

	if (path->open_max > 0 && path->max < path->min)
		path->min = path->open_max;
	path->max = fmax(path->max,
			 path->open_max > 0 ? path->open_max : -INFINITY);
	path->min_most = path->min;
	path->max_most = path->max;
	path->min = fmax(path->min - fmax(cost, 0), 0);
	path->max -= fmax(cost, 0);
	/* The clock may have long steps and be read out of order, so a single short
	 * measurement is no bound; but the shortest call took no more than the mean. */
	if (path->min >= LEAST_NS)
		path->min_most = path->min;
	else if (path->calls && path->total_raw > 0)
		path->min_most = path->total_raw / (double)path->calls;
	if (path->max >= LEAST_NS)
		path->max_most = path->max;
	else if (path->max_most >= path->min)
		path->max = path->min;
}

bool is_untimed(const struct sums *sums)
{
	return sums->untimed > 0 && sums->untimed >= sums->calls;
}

/* Links backwards, so that the children of a path stay in order. */
void paths_link(struct model *model)
{
	struct path *paths = model->paths;
	uint32_t i;

	for (i = model->path_count - 1; i > 0; i--) {
		paths[i].sibling = paths[paths[i].parent].child;
		paths[paths[i].parent].child = i;
	}
}

/*
 * Bottom up, because children have higher numbers than their parents.  A path
 * without times of its own gets the sum of the times below it.  Until a path's
 * own turn comes, its self_raw is the sum of its children's totals.
 */
static void measure_raw(struct model *model)
{
	struct path *path, *parent;
	uint32_t i;

	for (i = model->path_count - 1; i > 0; i--) {
		path = &model->paths[i];
		parent = &model->paths[path->parent];
		if (path->function == NONE || !path->is_timed) {
			path->total_raw = path->self_raw;
			path->self_raw = 0;
		} else {
			path->self_raw = path->total_raw - path->self_raw;
		}
		parent->self_raw += path->total_raw;
		/* The noise of a child's time is also in its parent's self
		 * time. */
		path->self_tick = fmax(path->self_tick, path->tick);
		parent->self_tick = fmax(parent->self_tick, path->tick);
		parent->child_variance += path->raw_variance;
	}
	path = &model->paths[0];
	path->total_raw = path->self_raw;
	path->self_raw = 0;
}

/*
 * If ticks separate self times from our own cost, a total is the sum of the
 * times below it, and so are the variances.  A total that was timed exactly has
 * only the error of the subtracted cost.
 */
static double total_variance(const struct model *model, const struct path *path)
{
	double cost = fmax(path->total_raw - path->total, 0);

	if (model->raw || path->unseen_calls > 0 || path->seen_tick == 0)
		return path->raw_variance;
	return path->tick > 0 ? path->variance :
				fmin(path->variance, path->seen_tick * cost);
}

/* A thread's time is not negative.  Its measured one may be, after our own cost was
 * subtracted; what other threads did did not take less because of it. */
static double total_in(const struct path *parent, const struct path *path)
{
	return parent->function == NONE ? fmax(path->total, 0) : path->total;
}

static void measure_paths(struct model *model)
{
	struct path *path, *parent;
	uint32_t i;

	for (i = model->path_count - 1; i > 0; i--) {
		path = &model->paths[i];
		parent = &model->paths[path->parent];
		path->total += path->self;
		path->total_most += fmax(path->self_most, 0);
		path->total_raw_waited += path->raw_waited;
		path->total_raw -= path->total_raw_waited;
		path->variance += path->self_variance;
		path->variance = total_variance(model, path);
		measure_range(path);
		parent->total += total_in(parent, path);
		parent->total_most += path->total_most;
		parent->total_raw_waited += path->total_raw_waited;
		parent->variance += path->variance;
	}
	model->paths[0].total_raw -= model->paths[0].total_raw_waited;
}

/* No tick at all means "less than about one". */
static void floor_variance(struct sums *sums)
{
	double least = sums->tick * sums->tick;

	sums->self_variance = fmax(sums->self_variance, least);
	sums->total_variance = fmax(sums->total_variance, least);
}

/* Goes down to the first child, otherwise to the next sibling of the nearest
 * ancestor that has one. */
void model_walk(const struct model *model, uint32_t root,
		const struct walk *walk)
{
	const struct path *paths = model->paths;
	uint32_t at = root, depth = 0;
	bool down = walk->enter(walk->context, root, 0);

	for (;;) {
		if (down && paths[at].child != NONE) {
			at = paths[at].child;
			depth++;
		} else {
			walk->leave(walk->context, at, depth);
			while (at != root && paths[at].sibling == NONE) {
				at = paths[at].parent;
				depth--;
				walk->leave(walk->context, at, depth);
			}
			if (at == root)
				return;
			at = paths[at].sibling;
		}
		down = walk->enter(walk->context, at, depth);
	}
}

struct summing {
	const struct model *model;
	struct part_sums *part;
};

/* The range of a function is known if the ranges of all its paths are. */
static void add_range(struct sums *sums, const struct path *path)
{
	if (path->has_no_range) {
		sums->has_no_range = true;
		return;
	}
	if (!(path->max >= path->min))
		return;
	if (!sums->has_range) {
		sums->min = sums->min_most = INFINITY;
		sums->max = sums->max_most = -INFINITY;
	}
	sums->min = fmin(sums->min, path->min);
	sums->min_most = fmin(sums->min_most, path->min_most);
	sums->max = fmax(sums->max, path->max);
	sums->max_most = fmax(sums->max_most, path->max_most);
	sums->has_range = true;
}

void add_missing(struct missing *sum, const struct missing *missing)
{
	sum->calls += missing->calls;
	sum->error += missing->error;
	sum->variance += missing->variance;
	sum->is_estimate |= missing->is_estimate;
	sum->is_unknown |= missing->is_unknown;
}

bool sums_are_there(const struct sums *sums)
{
	/* In a part of the time, a call that began before it only has time. */
	return sums->calls || sums->open || sums->older || sums->is_sampled ||
	       sums->total_raw > 0;
}

uint32_t called_functions(const struct model *model)
{
	uint32_t count = 0, i;

	for (i = 0; i < model->function_count; i++)
		count += sums_are_there(&model->functions[i].sums);
	return count;
}

static bool enter_path(void *context, uint32_t number, uint32_t depth)
{
	struct summing *summing = context;
	const struct path *path = &summing->model->paths[number];
	struct part_sums *part = summing->part;
	struct sums *sums;

	(void)depth;
	if (path->function == NONE)
		return true;
	if (!part->is_there[path->function])
		part->functions[part->count++] = path->function;
	part->is_there[path->function] = true;
	sums = &part->sums[path->function];
	/* If a function calls itself, each sample counts once: for the outermost call. */
	if (!summing->model->is_sampled || part->active[path->function] == 0) {
		sums->calls += path->calls;
		sums->guessed += path->guessed;
	}
	sums->open += path->open;
	sums->older += path->older;
	sums->untimed += path->untimed;
	add_missing(&sums->missing, &path->missing);
	sums->is_sampled |= path->is_sampled;
	sums->self += path->self;
	sums->self_most += path->self_most;
	sums->self_raw += path->self_raw;
	sums->self_variance += path->self_variance;
	sums->tick = fmax(sums->tick, path->self_tick);
	sums->has_waited |= path->has_waited;
	sums->waited += path->waited;
	sums->waited_least = fmax(sums->waited_least, path->waited_least);
	add_range(sums, path);
	if (part->active[path->function]++ == 0) {
		sums->total += path->total;
		sums->total_most += path->total_most;
		sums->total_raw += path->total_raw;
		sums->total_variance += path->variance;
	}
	return true;
}

static void leave_path(void *context, uint32_t number, uint32_t depth)
{
	struct summing *summing = context;
	const struct path *path = &summing->model->paths[number];

	(void)depth;
	if (path->function != NONE)
		summing->part->active[path->function]--;
}

void part_sums_begin(struct part_sums *part, const struct model *model)
{
	size_t count = model->function_count;

	*part = (struct part_sums){
		.sums = allocate(count, sizeof(*part->sums)),
		.functions = allocate(count, sizeof(*part->functions)),
		.active = allocate(count, sizeof(*part->active)),
		.is_there = allocate(count, sizeof(*part->is_there)),
	};
}

void part_sums_end(struct part_sums *part)
{
	free(part->sums);
	free(part->functions);
	free(part->active);
	free(part->is_there);
}

static int compare_numbers(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

void part_sums_of(struct part_sums *part, const struct model *model,
		  uint32_t root)
{
	struct summing summing = { model, part };
	struct walk walk = { enter_path, leave_path, &summing };
	uint32_t i;

	for (i = 0; i < part->count; i++) {
		part->sums[part->functions[i]] = (struct sums){ .calls = 0 };
		part->is_there[part->functions[i]] = false;
	}
	part->count = 0;
	model_walk(model, root, &walk);
	for (i = 0; i < part->count; i++) {
		struct sums *sums = &part->sums[part->functions[i]];

		sums->self = shown_self(sums->self, sums->total);
		floor_variance(sums);
		sums->has_range = sums->has_range && !sums->has_no_range;
	}
	if (part->count)
		qsort(part->functions, part->count, sizeof(*part->functions),
		      compare_numbers);
}

/* If paths are shared by all threads, each thread gets its share of their
 * times.  How much of it is in focus is unknown. */
static void share_among_threads(struct model *model)
{
	struct thread *thread = model->threads;
	double sum = 0;
	uint32_t i;

	for (i = 0; i < model->thread_count; i++) {
		thread[i].self = fmax(thread[i].self, 0);
		sum += thread[i].self;
	}
	for (i = 0; i < model->thread_count; i++)
		if (model->by_thread)
			thread[i].self = model->paths[thread[i].path].total;
		else if (sum > 0 &&
			 !(model->hidden && model->hidden->has_focus))
			thread[i].self *= model->time / sum;
}

static void sum_functions(struct model *model)
{
	struct part_sums part;
	uint32_t i;

	part_sums_begin(&part, model);
	part_sums_of(&part, model, 0);
	for (i = 0; i < model->function_count; i++)
		model->functions[i].sums = part.sums[i];
	part_sums_end(&part);
}

/* The sums of shown functions.  The errors of estimates are at most those of
 * all calls. */
static void sum_shown_functions(struct model *model)
{
	double *errors = allocate(model->function_count, sizeof(*errors));
	uint32_t i;

	for (i = 0; i < model->function_count; i++)
		errors[i] = model->functions[i].sums.missing.error;
	paths_link(model);
	sum_functions(model);
	for (i = 0; i < model->function_count; i++) {
		struct missing *missing = &model->functions[i].sums.missing;

		missing->error = fmin(missing->error, errors[i]);
	}
	free(errors);
}

static void find_columns(struct model *model)
{
	const struct sums *sums;
	uint32_t i;

	for (i = 0; i < model->function_count; i++) {
		sums = &model->functions[i].sums;
		if (!is_untimed(sums) && sums_are_there(sums))
			model->has_times = true;
		model->has_waited |= sums->has_waited;
		/* With a coarse clock, a range would cover only the few calls
		 * that were timed exactly. */
		if (sums->has_range &&
		    (model->has_extras || !model->has_errors))
			model->has_ranges = true;
	}
}

void totals_measure(struct model *model)
{
	paths_link(model);
	measure_raw(model);
	selftime_measure(model);
	measure_paths(model);
	sum_functions(model);
	budget_measure(model);
	if (shown_fold(model))
		sum_shown_functions(model);
	find_columns(model);
	model->time = model->paths[0].total;
	model->time_raw = model->paths[0].total_raw;
	share_among_threads(model);
}

struct sums *sums_of_functions(const struct model *model)
{
	struct sums *sums = allocate(model->function_count, sizeof(*sums));
	uint32_t i;

	for (i = 0; i < model->function_count; i++)
		sums[i] = model->functions[i].sums;
	return sums;
}

double *paths_weigh(const struct model *model)
{
	double *weights = allocate(model->path_count, sizeof(*weights));
	const struct path *paths = model->paths;
	uint32_t i;

	for (i = model->path_count - 1; i > 0; i--) {
		if (model->has_times) {
			weights[i] = path_total(&paths[i]);
			continue;
		}
		weights[i] += (double)paths[i].calls;
		weights[paths[i].parent] += weights[i];
	}
	if (model->has_times)
		for (i = paths[0].child; i != NONE; i = paths[i].sibling)
			weights[0] += fmax(weights[i], 0);
	return weights;
}
