/*
 * Ticks and samples follow a Poisson distribution: if none was seen, the time
 * was less than three of them represent, with 95 % certainty.  It was also at
 * most the time measured before our own cost was subtracted.
 */
#include <math.h>

#include "base/map.h"
#include "model/bounds.h"
#include "model/model.h"
#include "model/totals.h"

#define NONE_SEEN 3

double bound_of(double time, double most, double tick, double above)
{
	double bound;

	if (time >= fmax(tick, 0.5) || (tick == 0 && most < 0.5))
		return 0;
	most = fmax(most, 0);
	bound = fmax(NONE_SEEN * tick, most + 2 * sqrt(tick * most));
	return above > 0 ? fmin(bound, above) : bound;
}

double waited_bound(const struct sums *sums)
{
	return sums->waited < sums->waited_least ? sums->waited_least : 0;
}

double total_bound(const struct sums *sums, double above)
{
	return bound_of(sums->total, sums->total_most, sums->tick, above);
}

double duration_bound(double ns, double most)
{
	return ns >= LEAST_NS ? 0 : fmax(most, LEAST_NS);
}

double shown_self(double self, double total)
{
	return fmax(fmin(self, total), 0);
}

/* A total, whether known or a bound, includes the self time. */
static double within(double total, double total_bound)
{
	return total_bound > 0 ? total_bound : fmax(total, 0);
}

double self_bound(const struct sums *sums, double above)
{
	return bound_of(sums->self, sums->self_most, sums->tick,
			within(sums->total, total_bound(sums, above)));
}

double path_total(const struct path *path)
{
	return fmin(path->total, path->above);
}

double path_self(const struct path *path)
{
	return shown_self(path->self, path_total(path));
}

double path_total_bound(const struct path *path)
{
	return bound_of(path_total(path), path->total_most, path->self_tick,
			path->above);
}

void paths_limit(struct model *model)
{
	for (uint32_t i = 1; i < model->path_count; i++) {
		struct path *path = &model->paths[i];
		const struct path *caller = &model->paths[path->parent];

		path->above = path->parent == 0 || caller->function == NONE ?
				      model->time :
				      within(path_total(caller),
					     path_total_bound(caller));
	}
}

double path_self_bound(const struct path *path)
{
	return bound_of(path_self(path), path->self_most, path->self_tick,
			within(path_total(path), path_total_bound(path)));
}
