/*
 * Recordings with a budget (profrun --budget).  Calls are counted, times come
 * from samples of processor time that are assigned to paths, and functions that
 * cost too much were switched off, so that some of their calls are estimates.
 */
#ifndef REPORT_MODEL_BUDGET_H
#define REPORT_MODEL_BUDGET_H

#include <stdbool.h>
#include <stdint.h>
#include <shim/format.h>

#include "model/estimates.h"

struct build;
struct entry;
struct model;
struct process;

/* A function that was switched off, in one process. */
struct throttled_function {
	struct shim_throttled_node node;
	uint32_t function;
	double off_ns;	      /* processor time while it was off */
	uint64_t before;      /* calls counted before that */
	uint64_t recorded;    /* calls counted since */
	uint64_t counted;     /* calls counted at their sites */
	double divided;	      /* the part of them that has gone to paths, */
	uint64_t given;	      /* in calls */
	uint32_t paths;	      /* in which they were */
	struct estimate rest; /* estimate of the calls that were not counted */
};

/* The sum over all processes with a budget. */
struct budget {
	double percent;	  /* the largest */
	double period_ns; /* the largest period of samples */
	double time_ns;	  /* of all samples */
	double hooks_ns;  /* of those that found hooks */
	double own_ns;	  /* cost of sampling, deciding and switching */
	double images_ns; /* cost of looking at objects, in no sample */
	double sites_ns;  /* time of call sites, subtracted from samples */
	uint64_t failed;  /* functions that could not be switched off */
	/* functions that were switched off, each counted once */
	uint32_t functions;
	struct count calls; /* of these */
	/* functions whose calls are exact, and those of their paths estimates */
	uint32_t counted_functions;
	uint64_t counted;
	struct throttled_function *throttled;
	uint32_t throttled_count, throttled_room;
};

/* Called before and after the files of a process. */
void budget_begin(struct build *build);
void budget_end(struct build *build);
/* Adds a node of the process; its calls must have been added. */
void budget_add_node(struct build *build, const struct shim_node *node,
		     const struct entry *entry);
/* Adds a struct shim_sampled_node of the process. */
void budget_add_samples(struct build *build, const struct entry *entry);
/* Adds the paths that samples found below others, after all processes. */
void budget_add_paths(struct model *model);
/* Finds the errors of whole functions, which are smaller than the sums of their
 * paths' errors. */
void budget_measure(struct model *model);
/* Whether times of the process come from samples. */
bool budget_has(const struct process *process);
/* Whether samples tell what of its exact times is our own cost. */
bool budget_is_calibrated(const struct process *process);

#endif
