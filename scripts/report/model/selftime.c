/*
 * Separates the program's part of a path's self time from our own cost.  There
 * are two ways.
 *
 * Ticks outside of all hooks: this is right even where hooks take more time
 * than usual, but needs enough ticks.  It is the only way for paths that were
 * not timed exactly.  Samples beside exact times (calltree:calibrate) are ticks, too,
 * and of processor time: what the exact times have beyond them is waiting.
 *
 * Or the total of the path minus its children's totals, minus the estimated
 * cost of hooks inside its own calls and around those of its children.  For
 * exactly timed paths this is more accurate, as long as their calls are long
 * and their children have few calls.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "model/model.h"
#include "model/selftime.h"

/* The cost of a call was calibrated in one place.  Elsewhere it may differ by
 * this share. */
#define COST_VARIES 0.5

static bool is_timed(const struct path *path)
{
	return path->function != NONE && path->is_timed;
}

static bool has_seen(const struct path *path)
{
	return path->seen_tick > 0 && path->unseen_calls == 0;
}

/* The sum of all exactly timed calls of a function; @tick 0: none. */
struct choice {
	struct self_exactly sums;
	double tick;
	bool is_seen;
	/* With samples of processor time: the other time; less than @least may be
	 * chance.  @above is what its paths have above their samples. */
	double waited, least, above;
	/* Of its paths that no tick is in: all there was, and our own cost in it. */
	double raw, cost;
};

/* Only the calibrated cost separates the program's time from ours. */
static bool is_exact(const struct path *path)
{
	return path->tick == 0 && path->child_variance == 0;
}

static double sample_time(const struct self_exactly *exactly)
{
	return exactly->seen.time + exactly->seen_cost;
}

static double time_above_samples(const struct path *path)
{
	return fmax(path->exactly.raw - sample_time(&path->exactly), 0);
}

static void add_exactly(struct choice *choice, const struct path *path)
{
	struct self_exactly *sums = &choice->sums;

	sums->raw += path->exactly.raw;
	sums->cost += path->exactly.cost;
	sums->child_variance += path->exactly.child_variance;
	sums->seen.time += path->exactly.seen.time;
	sums->seen.variance += path->exactly.seen.variance;
	sums->seen_cost += path->exactly.seen_cost;
	sums->is_calibrated |= path->exactly.is_calibrated;
	choice->tick = fmax(choice->tick, path->seen_tick);
}

/* (The choice must not depend on the number of ticks: functions with few ticks
 * would come out too short.) */
static bool is_best_seen(const struct choice *choice)
{
	const struct self_exactly *sums = &choice->sums;
	double cost = COST_VARIES * sums->cost;

	return sums->child_variance + cost * cost >
	       choice->tick * fmax(sums->raw - sums->cost, choice->tick);
}

#define SIGMAS 5

static double sample_chance(double time, double tick)
{
	return SIGMAS * sqrt(tick * fmax(time, tick));
}

static void compare_samples(struct choice *choice)
{
	const struct self_exactly *sums = &choice->sums;
	double found = sample_time(sums);

	if (!sums->is_calibrated)
		return;
	choice->least = sample_chance(found, choice->tick);
	if (sums->raw > found + choice->least)
		choice->waited = sums->raw - found;
}

/* More than on a machine with a free processor for the program. */
#define WAITED_SHARE 0.05

/* Whether the program has waited at all.  If not, the exact times are processor time, and
 * better than samples where they are long. */
static bool has_waited(const struct choice *choices, uint32_t count)
{
	double raw = 0, found = 0, tick = 0;
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (!choices[i].sums.is_calibrated)
			continue;
		raw += choices[i].sums.raw;
		found += sample_time(&choices[i].sums);
		tick = fmax(tick, choices[i].tick);
	}
	return raw > found * (1 + WAITED_SHARE) + sample_chance(found, tick);
}

/* One choice for each function, so that it does not matter whether threads have
 * separate paths. */
static struct choice *choose(const struct model *model)
{
	struct choice *choices = allocate(model->function_count,
					  sizeof(*choices));
	const struct path *path;
	struct choice *choice;
	bool waited;
	uint32_t i;

	for (i = 1; i < model->path_count; i++) {
		path = &model->paths[i];
		if (!is_timed(path))
			continue;
		choice = &choices[path->function];
		if (has_seen(path)) {
			add_exactly(choice, path);
			choice->above += time_above_samples(path);
		} else if (is_exact(path)) {
			choice->raw += path->self_raw;
			choice->cost += path->cost;
		}
	}
	waited = has_waited(choices, model->function_count);
	for (i = 0; i < model->function_count; i++) {
		choices[i].is_seen = is_best_seen(&choices[i]) ||
				     (waited && choices[i].sums.is_calibrated);
		compare_samples(&choices[i]);
	}
	return choices;
}

/*
 * How often the cost that was measured at the start fits into what samples found in
 * hooks; or without them into what the ticks leave of all paths that they are not asked
 * about.  The fewer ticks, the nearer to once: as far as it
 * may be chance, it is taken for that.
 */
static double fit_cost(const struct choice *choices, uint32_t count)
{
	double more = 0, cost = 0, variance = 0, varies, tick = 0;
	uint32_t i;

	for (i = 0; i < count; i++) {
		const struct self_exactly *sums = &choices[i].sums;

		if (choices[i].tick == 0 ||
		    (choices[i].is_seen && !sums->is_calibrated))
			continue;
		cost += sums->cost;
		tick = fmax(tick, choices[i].tick);
		if (sums->is_calibrated) {
			more += sums->seen_cost - sums->cost;
			variance += sums->seen_cost * choices[i].tick;
			continue;
		}
		more += sums->raw - sums->cost - sums->seen.time;
		variance += sums->seen.variance + sums->child_variance;
	}
	if (!(cost > 0))
		return 1;
	more /= cost;
	variance = fmax(variance, tick * tick) / (cost * cost);
	varies = fmax(COST_VARIES * COST_VARIES, more * more - variance);
	return fmax(1 + more * varies / (varies + variance), 0);
}

static void add_ticked(struct path *path, const struct self_seen *seen)
{
	path->self += seen->time;
	path->self_variance += seen->variance;
	path->self_tick = fmax(path->self_tick, path->seen_tick);
}

/* The function's waiting, in proportion to what its paths have above their samples. */
static void measure_waiting(struct path *path, const struct choice *choice)
{
	if (!path->exactly.is_calibrated)
		return;
	path->has_waited = true;
	path->waited_least = choice->least;
	if (!(choice->above > 0))
		return;
	path->waited = path->raw_waited = choice->waited *
					  time_above_samples(path) /
					  choice->above;
}

static void measure_seen(struct path *path, const struct choice *choice,
			 double times)
{
	const struct self_exactly *exactly = &path->exactly;

	if (path->tick > 0)
		add_ticked(path, &path->seen);
	path->self_most = path->self + path->seen_cost;
	if (choice->is_seen) {
		add_ticked(path, &exactly->seen);
		path->self_most += exactly->is_calibrated ?
					   exactly->seen.time +
						   exactly->seen_cost :
					   exactly->seen.time;
	} else {
		path->self += exactly->raw - times * exactly->cost;
		path->self_most += exactly->raw;
		path->self_variance += exactly->child_variance;
	}
	measure_waiting(path, choice);
	path->self_raw -= path->raw_waited;
}

/* Ticks in a coarsely timed path vary like samples; the self time of an exactly
 * timed path inherits the noise of its coarse children. */
static void measure_raw(struct path *path, const struct choice *choice,
			double cost)
{
	/* Our own cost cannot have been more than all the time of the function; then none
	 * of it is the program's. */
	path->self = cost > 0 && is_exact(path) && choice->cost > choice->raw ?
			     0 :
			     path->self_raw - cost;
	path->self_most = path->self_raw;
	path->self_variance = path->tick > 0 ?
				      path->tick * fmax(path->self_raw, 0) :
				      path->child_variance;
}

void selftime_measure(struct model *model)
{
	struct choice *choices = choose(model);
	double times = fit_cost(choices, model->function_count);
	struct path *path;
	uint32_t i;

	for (i = 1; i < model->path_count; i++) {
		path = &model->paths[i];
		if (model->raw)
			path->seen_tick = 0;
		if (!is_timed(path))
			continue;
		if (has_seen(path))
			measure_seen(path, &choices[path->function], times);
		else
			measure_raw(path, &choices[path->function],
				    model->raw ? 0 : path->cost);
	}
	free(choices);
}

/* --- parts of a job --- */

void selftime_add(struct self_parts *parts, const struct path *path)
{
	if (!is_timed(path))
		return;
	if (!has_seen(path)) {
		parts->plain_raw += path->self_raw;
		parts->plain_cost += path->cost;
		return;
	}
	if (path->tick > 0)
		parts->ticked += path->seen.time;
	parts->seen += path->exactly.seen.time;
	parts->raw += path->exactly.raw;
	parts->cost += path->exactly.cost;
}

void selftime_begin(struct self_choices *choices, const struct model *model)
{
	choices->choices = choose(model);
	choices->times = fit_cost(choices->choices, model->function_count);
}

double selftime_of(const struct self_choices *choices, uint32_t function,
		   const struct self_parts *parts)
{
	const struct choice *choice = &choices->choices[function];
	double self = parts->ticked;

	self += choice->is_seen ? parts->seen :
				  parts->raw - choices->times * parts->cost;
	if (!(parts->plain_cost > 0 && choice->cost > choice->raw))
		self += parts->plain_raw - parts->plain_cost;
	return self;
}

void selftime_end(struct self_choices *choices)
{
	free(choices->choices);
}
