/*
 * Times as they are printed.  If fewer ticks or samples were seen than one, or the hooks
 * account for all of the time, it cannot be distinguished from 0: an upper bound is
 * shown, as "< X".
 */
#ifndef REPORT_MODEL_BOUNDS_H
#define REPORT_MODEL_BOUNDS_H

#include <stdint.h>

struct model;
struct path;
struct sums;

/*
 * bound_of - the upper bound of a time, with 95 % certainty; 0: print @time
 * itself
 *
 * @most is the measured time, including our own cost.  @tick is the unit of
 * measurement; 0: a clock that measures every nanosecond.  @above is a time
 * that includes this one, or 0.
 */
double bound_of(double time, double most, double tick, double above);

/*
 * The self time to print.  A parent's self time includes time of its children
 * that a coarse clock missed, so a child's time minus our cost may be below 0:
 * sums over many paths are right, but a single self time must not exceed its
 * total.
 */
double shown_self(double self, double total);
/* The bound of a function's printed times, or 0.  @above: the time of the
 * program. */
double self_bound(const struct sums *sums, double above);
double total_bound(const struct sums *sums, double above);
/* The bound of the time that it waited itself, or 0. */
double waited_bound(const struct sums *sums);
/* The bound of a shortest or longest call of @ns, or 0; @most: the measured time. */
double duration_bound(double ns, double most);
/* Finds the maximum of each path's time: its caller's total, or the bound of that. */
void paths_limit(struct model *model);
/*
 * The printed times of a path, none longer than its caller's.  Our own cost in it is an
 * estimate, so that what is left of a path may be less than what is left of its callees.  The
 * sums of functions, and the exports whose readers add paths up, have the times as they are.
 */
double path_self(const struct path *path);
double path_total(const struct path *path);
/* The bounds of the path's times. */
double path_self_bound(const struct path *path);
double path_total_bound(const struct path *path);

#endif
