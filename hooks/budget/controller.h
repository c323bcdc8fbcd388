/*
 * Decides which functions are switched off, and measures in bursts how often these are
 * called.  All functions are called in a sample_hit, by one thread at a time.
 */
#ifndef BUDGET_CONTROLLER_H
#define BUDGET_CONTROLLER_H

#include "path/throttled.h"

/* The state of the process at a sample.  Costs are differences of the thread's processor
 * time: a handler may be preempted for longer than it works. */
struct moment {
	struct tree *tree; /* of the calling thread */
	struct shim_meta *meta;
	uint64_t weight;   /* samples of the process so far, */
	uint64_t hooks;	   /* and of these in hooks, */
	uint64_t counters; /* and in code that counts calls */
	/* the thread's processor time at the begin of the handler, in ns */
	uint64_t begin;
};

extern uint32_t controller_percent; /* the budget */

/* @clock units in nanoseconds; 0 if their length is unknown. */
uint64_t controller_ns(const struct shim_meta *meta, uint64_t clock);

/* The cost of a call of hooks, and of a call that is counted, in 1/1000 ns. */
uint64_t controller_hooks_cost(const struct moment *moment);
uint64_t controller_counted_cost(const struct moment *moment);

/* The counted calls in @tree of the functions that were counted so far.  They can be compared
 * as long as the number of changes stays the same. */
uint64_t controller_counted_in(const struct tree *tree);
uint64_t controller_changes(void);

/* The counters from this one on are for bursts. */
#define BURST_COUNTERS (SHIM_COUNTERS / 2)

/* Switches functions off if it is time to look, and calls cost more than the budget. */
void controller_look(const struct moment *moment);

/* The description of a function that is off, in the file of the thread's tree. */
void controller_describe(const struct moment *moment,
			 struct throttled *throttled);

/* An image was unloaded: its addresses may be reused. */
void controller_image_gone(uintptr_t low, uintptr_t high);

/* In a fork child. */
void controller_forked(void);

/* Ends the burst of this thread, or begins one if it is time. */
void bursts_step(const struct moment *moment);
/* What a burst has counted is of another time. */
void bursts_forget(void);
void bursts_forked(void);

/* The calls that bursts have counted at their sites. */
uint64_t bursts_counted(void);

/* The tree of the thread whose burst is on, or NULL.  Its calls are paid for apart. */
const struct tree *bursts_tree(void);

#endif
