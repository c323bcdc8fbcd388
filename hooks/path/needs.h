/*
 * What a profiler needs of the engine, and the start.
 *
 * A profiler states its needs when it is started, before it creates a handle of its
 * own, because the engine must get events first.  The engine begins after all profilers
 * have been started.  The functions return false, and log the reason, if the engine
 * runs already without what the profiler needs.
 */
#ifndef PATH_NEEDS_H
#define PATH_NEEDS_H

#include <shim/hooks.h>
#include <stdbool.h>

struct path_writer;

/* TRACED: only trace writes calls; the tree counts nothing. */
enum clock { COUNTS, COARSE, EXACT, TRACED };

/* Calls are counted in the recording, and timed by @clock or a more exact one. */
bool tree_need_calls(enum clock clock, const char *profiler);

/* Calls that are timed by COARSE are timed by the processor time of their thread. */
void tree_need_cpu(void);

/* Each call is written by @writer. */
bool tree_need_writer(const struct path_writer *writer);

/* Begins the tree; for the entries of all profilers that have needs. */
void tree_begin(void);

/* The hooks check for a look back from the start, as after a restart. */
void tree_need_look_back(void);

/* The user chose calltree; other profilers need only its tree. */
extern bool tree_is_asked;

#endif
