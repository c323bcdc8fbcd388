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

double path_total_bound(const struct path *path)
{
	return bound_of(path->total, path->total_most, path->self_tick,
			path->above);
}

void paths_limit(struct model *model)
{
	for (uint32_t i = 1; i < model->path_count; i++) {
		struct path *path = &model->paths[i];
		const struct path *caller = &model->paths[path->parent];

		path->above = path->parent == 0 || caller->function == NONE ?
				      model->time :
				      within(caller->total,
					     path_total_bound(caller));
	}
}

double path_self_bound(const struct path *path)
{
	return bound_of(shown_self(path->self, path->total), path->self_most,
			path->self_tick,
			within(path->total, path_total_bound(path)));
}
