/* Totals, self times and sums of a model, and a walk through its paths. */
#ifndef REPORT_MODEL_TOTALS_H
#define REPORT_MODEL_TOTALS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"

/* Nobody knows these functions' times: the profile only counted. */
bool is_untimed(const struct sums *sums);

/* Whether there is something to show: a call, or a sample. */
bool sums_are_there(const struct sums *sums);
void add_missing(struct missing *sum, const struct missing *missing);

/* Totals, self times and sums, once all nodes are added. */
void totals_measure(struct model *model);
/*
 * The sums of functions over the paths below one of them.  There may be as many threads
 * as functions, so what is not below it costs nothing.
 */
struct part_sums {
	struct sums *sums;   /* by function; 0 of those that are not there */
	uint32_t *functions; /* that are, in their order */
	uint32_t count;
	uint32_t *active; /* calls of a function we are below */
	bool *is_there;
};

void part_sums_begin(struct part_sums *part, const struct model *model);
/* Of the paths below @root, in place of those before. */
void part_sums_of(struct part_sums *part, const struct model *model,
		  uint32_t root);
void part_sums_end(struct part_sums *part);
/*
 * Self time to print.  What a coarse clock missed in the children is in the
 * parent's self time, and they can come out below 0 when our cost is taken
 * off: sums of many are right, but one may not seem longer than its total.
 */
double shown_self(double self, double total);

/*
 * A walk down from @root without recursion, however deep the tree: calls
 * enter() before and leave() after the paths below.  Paths whose enter()
 * returns false are not entered.
 */
struct walk {
	bool (*enter)(void *context, uint32_t path, uint32_t depth);
	void (*leave)(void *context, uint32_t path, uint32_t depth);
	void *context;
};

void model_walk(const struct model *model, uint32_t root,
		const struct walk *walk);

#endif
