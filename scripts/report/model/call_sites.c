/*
 * With a budget, the hooks of hot functions are off, but their call sites still take
 * time: the instructions that load the arguments of hooks, and those that save the
 * registers around them.  The processor executes these beside the program's own
 * instructions, so no sample belongs to one of the two alone.  Therefore each call
 * costs the same.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "model/budget.h"
#include "model/call_sites.h"
#include "model/model.h"
#include "read/process.h"

/* The call sites of a call take so much of the time of hooks that count, which each
 * process measures at its start; and in some programs this share more or less. */
#define SITES_SHARE (1 / 8.0)
#define SITES_VARY  0.5
/* The program's part of the time of a function is at least this one. */
#define LEAST_LEFT 0.125

double call_sites_cost(const struct process *process)
{
	const struct shim_cost *cost = &process->meta.cost_coarse;

	return ((double)cost->inside + (double)cost->outside) / 1000 *
	       process->unit_ns * SITES_SHARE;
}

/* The sums of a function: samples outside of hooks, and the time of its call sites. */
struct sites {
	double time, cost;
};

static double time_of(const struct path *path)
{
	return fmin(path->seen.time, path->own_raw);
}

static void subtract(struct path *path, double cost, double variance)
{
	path->seen.time -= cost;
	path->seen.variance += variance;
	path->seen_cost += cost;
}

void call_sites_subtract(struct model *model)
{
	struct sites *sites;
	uint32_t i;

	if (!model->budget || model->raw)
		return;
	sites = allocate(model->function_count, sizeof(*sites));
	for (i = 1; i < model->path_count; i++) {
		const struct path *path = &model->paths[i];

		if (path->function == NONE)
			continue;
		sites[path->function].time += time_of(path);
		sites[path->function].cost += path->sites_cost;
	}
	for (i = 1; i < model->path_count; i++) {
		struct path *path = &model->paths[i];
		const struct sites *all = &sites[path->function];
		double cost, part;

		if (path->function == NONE || !(all->time > 0) ||
		    !(all->cost > 0))
			continue;
		cost = fmin(all->cost, all->time * (1 - LEAST_LEFT));
		part = time_of(path) / all->time;
		/* The parts of its variance add up to that of the function. */
		subtract(path, part * cost,
			 part * SITES_VARY * cost * SITES_VARY * cost);
		model->budget->sites_ns += part * cost;
	}
	free(sites);
}
