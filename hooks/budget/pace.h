/*
 * How fast the program runs in bursts, beside the time before and after them.  All functions
 * are called in a sample_hit, by one thread at a time.
 */
#ifndef BUDGET_PACE_H
#define BUDGET_PACE_H

#include "budget/controller.h"

/* A sample has begun; @is_in_burst: it ends a burst. */
void pace_sample(const struct moment *moment, bool is_in_burst);

/* That burst took @ns of processor time without the known cost of its calls. */
void pace_burst_ended(uint64_t ns);

/* The work of the sample has ended, at @now_ns of the thread's processor time. */
void pace_sample_ended(uint64_t now_ns);

/* Stores the pace. */
void pace_publish(struct shim_meta *meta);

/* A burst of another thread was ended. */
void pace_forget(void);

/* In a fork child. */
void pace_forked(void);

#endif
