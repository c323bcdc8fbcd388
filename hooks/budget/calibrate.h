/*
 * calltree:calibrate measures its own cost in the running program: samples of processor
 * time show how much of a path's time the hooks take.
 */
#ifndef BUDGET_CALIBRATE_H
#define BUDGET_CALIBRATE_H

/* Called after all profilers have been started, and after tree_begin().  It takes
 * samples only if each call is timed exactly, and as long as no other profiler uses the
 * sampler.  Otherwise the log has the reason. */
void calibrate_begin(void);

#endif
