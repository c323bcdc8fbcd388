/* Separates the program's part of a path's self time from our own cost. */
#ifndef REPORT_MODEL_SELFTIME_H
#define REPORT_MODEL_SELFTIME_H

struct model;

/* Sets self and self_variance of all paths; self_raw must be known. */
void selftime_measure(struct model *model);

/*
 * The self time of a function in one part of a job, such that the parts add up
 * to the self time in the whole job: the whole decides how much of the measured
 * times is our own cost.  The parts' paths need not be in memory then.
 */
struct self_parts {
	double ticked, seen;	      /* by ticks: coarse, exactly timed */
	double raw, cost;	      /* exactly timed paths with ticks */
	double plain_raw, plain_cost; /* paths without ticks */
};

struct choice;
struct self_choices {
	struct choice *choices; /* by function */
	double times; /* our cost, as a multiple of the measured one */
};

/* Adds @path of a measured model. */
void selftime_add(struct self_parts *parts, const struct path *path);
/* @model, the whole job, is measured and not raw. */
void selftime_begin(struct self_choices *choices, const struct model *model);
/* It may be negative, as that of a path: our own cost is an estimate. */
double selftime_of(const struct self_choices *choices, uint32_t function,
		   const struct self_parts *parts);
void selftime_end(struct self_choices *choices);

#endif
