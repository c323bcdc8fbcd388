/*
 * Time in recursion counts once for each pair of caller and callee, as it does for a
 * function.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "model/model.h"
#include "model/neighbours.h"
#include "model/totals.h"

struct gathering {
	const struct model *model;
	const bool *wanted;
	bool callers; /* callers; false: callees */
	/* by the other function; the last is for calls without a caller */
	struct sums *sums;
	uint32_t *active;
};

/* The row of the call along @path, or NONE if the function is not the requested
 * one. */
static uint32_t find_row(const struct gathering *gathering, uint32_t number)
{
	const struct model *model = gathering->model;
	const struct path *path = &model->paths[number];
	uint32_t caller;

	if (path->function == NONE)
		return NONE;
	caller = model->paths[path->parent].function;
	if (gathering->callers)
		return !gathering->wanted[path->function] ? NONE :
		       caller == NONE ? model->function_count :
					caller;
	return caller != NONE && gathering->wanted[caller] ? path->function :
							     NONE;
}

static bool enter_path(void *context, uint32_t number, uint32_t depth)
{
	struct gathering *gathering = context;
	const struct path *path = &gathering->model->paths[number];
	uint32_t row = find_row(gathering, number);

	(void)depth;
	if (row == NONE)
		return true;
	gathering->sums[row].calls += path->calls;
	gathering->sums[row].guessed += path->guessed;
	add_missing(&gathering->sums[row].missing, &path->missing);
	gathering->sums[row].is_sampled |= path->is_sampled;
	gathering->sums[row].tick = fmax(gathering->sums[row].tick,
					 path->self_tick);
	gathering->sums[row].self_most += path->self_most;
	gathering->sums[row].untimed += path->untimed;
	gathering->sums[row].open += path->open;
	gathering->sums[row].older += path->older;
	gathering->sums[row].self += path->self;
	if (gathering->active[row]++ > 0)
		return true;
	gathering->sums[row].total += path->total;
	gathering->sums[row].total_most += path->total_most;
	return true;
}

static void leave_path(void *context, uint32_t number, uint32_t depth)
{
	struct gathering *gathering = context;
	uint32_t row = find_row(gathering, number);

	(void)depth;
	if (row != NONE)
		gathering->active[row]--;
}

struct sums *neighbours_of(const struct model *model, const bool *wanted,
			   bool callers)
{
	uint32_t rows = model->function_count + 1;
	struct gathering gathering = {
		.model = model,
		.wanted = wanted,
		.callers = callers,
		.sums = allocate(rows, sizeof(struct sums)),
		.active = allocate(rows, sizeof(uint32_t)),
	};
	struct walk walk = { enter_path, leave_path, &gathering };

	model_walk(model, 0, &walk);
	free(gathering.active);
	return gathering.sums;
}
