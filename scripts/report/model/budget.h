/*
 * Recordings with a budget (profrun --budget): calls are counted, times come from samples
 * of processor time that are joined to the paths, and functions that cost too much were
 * switched off, so that some of their calls are estimates.
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
	uint64_t before;      /* calls until then */
	uint64_t recorded;    /* calls counted since */
	struct estimate rest; /* of those that were not */
};

/* What all processes with a budget add up to. */
struct budget {
	double percent;	    /* the largest */
	double period_ns;   /* of samples, likewise */
	double time_ns;	    /* of all samples */
	double hooks_ns;    /* of those that found hooks */
	double own_ns;	    /* of sampling, deciding and switching */
	uint64_t failed;    /* functions that could not be switched off */
	uint32_t functions; /* that were, each once */
	struct count calls; /* of these */
	struct throttled_function *throttled;
	uint32_t throttled_count, throttled_room;
};

/* Around the files of a process. */
void budget_begin(struct build *build);
void budget_end(struct build *build);
/* A node of the process, whose calls are added already. */
void budget_add_node(struct build *build, const struct shim_node *node,
		     const struct entry *entry);
/* A struct shim_sampled_node of it. */
void budget_add_samples(struct build *build, const struct entry *entry);
/* What samples found below a path, once all processes are added. */
void budget_add_paths(struct model *model);
/* The errors of whole functions, which are less than those of their paths. */
void budget_measure(struct model *model);
/* Whether times of the process come from samples. */
bool budget_has(const struct process *process);
/* Whether samples tell what of its exact times is our own cost. */
bool budget_is_calibrated(const struct process *process);

#endif
