/* Computes totals, self times and sums of a model; walks through its paths. */
#ifndef REPORT_MODEL_TOTALS_H
#define REPORT_MODEL_TOTALS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"

/* A shortest or longest call that takes less cannot be told from 0. */
#define LEAST_NS 0.5

/* Whether the functions' times are unknown because the profile only counted
 * calls. */
bool is_untimed(const struct sums *sums);

/* Whether there is a call or a sample to show. */
bool sums_are_there(const struct sums *sums);

/* The number of functions of which there is a call or a sample.  (A model of a trace also
 * has a function for numbers without one.) */
uint32_t called_functions(const struct model *model);

void add_missing(struct missing *sum, const struct missing *missing);

/* A copy of the functions' sums, by function, for row_order_functions(); free() it. */
struct sums *sums_of_functions(const struct model *model);

/* Weighs paths by total time, or by their calls including those below if nothing was timed;
 * path 0 has the weight of all.  free() the array. */
double *paths_weigh(const struct model *model);

/* Lists the children of each path, in the order of their numbers. */
void paths_link(struct model *model);

/* Computes totals, self times and sums, after all nodes were added. */
void totals_measure(struct model *model);
/*
 * The sums of functions over the paths below one path.  There may be as many
 * threads as functions, so functions outside cost nothing.
 */
struct part_sums {
	struct sums *sums;   /* by function; 0 for functions that are outside */
	uint32_t *functions; /* the functions inside, in order */
	uint32_t count;
	uint32_t *active; /* by function: its open calls on the current path */
	bool *is_there;
};

void part_sums_begin(struct part_sums *part, const struct model *model);
/* Computes the sums for the paths below @root; replaces earlier ones. */
void part_sums_of(struct part_sums *part, const struct model *model,
		  uint32_t root);
void part_sums_end(struct part_sums *part);

/*
 * Walks down from @root without recursion, however deep the tree is: calls
 * enter() before and leave() after the paths below.  If enter() returns false,
 * the paths below are skipped.
 */
struct walk {
	bool (*enter)(void *context, uint32_t path, uint32_t depth);
	void (*leave)(void *context, uint32_t path, uint32_t depth);
	void *context;
};

void model_walk(const struct model *model, uint32_t root,
		const struct walk *walk);

#endif
