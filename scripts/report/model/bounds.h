/*
 * Times that are too short to be told from 0: less than one tick or sample was seen, or
 * what hooks cost is all there was.  They are shown as "< X".
 */
#ifndef REPORT_MODEL_BOUNDS_H
#define REPORT_MODEL_BOUNDS_H

#include <stdint.h>

struct model;
struct path;
struct sums;

/*
 * bound_of - what a time is below with 95 % certainty; 0: @time can be shown itself
 *
 * @most is what was seen in all, our own cost in it.  @tick is what it was measured by;
 * 0: a clock that shows every nanosecond.  @above is a time that has this one in it, or 0.
 */
double bound_of(double time, double most, double tick, double above);

/* Of the times to print of a function: 0, or the bound.  @above: of the program. */
double self_bound(const struct sums *sums, double above);
double total_bound(const struct sums *sums, double above);
/* What a path's time is at most: its caller's total.  And the bounds of its times. */
double time_above(const struct model *model, uint32_t path);
double path_self_bound(const struct path *path, double above);
double path_total_bound(const struct path *path, double above);

#endif
