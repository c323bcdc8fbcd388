/*
 * calltree:calibrate measures its own cost where it arises: samples of processor
 * time tell how much of a path's time passes in hooks.
 */
#ifndef BUDGET_CALIBRATE_H
#define BUDGET_CALIBRATE_H

/* After all profilers have been started and tree_begin().  There are no samples unless
 * each call is timed exactly, and none where another profiler samples, then or later;
 * the log says so. */
void calibrate_begin(void);

#endif
