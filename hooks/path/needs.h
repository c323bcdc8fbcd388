/*
 * A profiler's needs of the engine, and the engine's start.
 *
 * A profiler states its needs when it is started, before it creates a handle, because
 * the engine must get events first.  The engine begins after all profilers have been
 * started.  The functions return false, and log the reason, if the engine already runs
 * and cannot serve the need.
 */
#ifndef PATH_NEEDS_H
#define PATH_NEEDS_H

#include <shim/hooks.h>
#include <stdbool.h>

struct path_writer;

/* TRACED: only trace writes calls; the tree counts nothing. */
enum clock { COUNTS, COARSE, EXACT, TRACED };

/* Needs the numbers of calls in the recording, and times by @clock or a more exact
 * clock. */
bool tree_need_calls(enum clock clock, const char *profiler);
/* Who needs calls already needs a more exact clock than before. */
void tree_need_clock(enum clock clock, const char *profiler);

/* Needs the calls, and the path of each of them, which a budget does not leave. */
bool tree_need_paths(const char *profiler);
/* The reason why it is too late for that, or NULL. */
const char *tree_paths_are_too_late(void);

/* The reason why calls cannot be left out for a budget, or NULL; NULL before the tree
 * begins. */
const char *tree_refuses_budget(void);
/* Calls are left out from now on, for good. */
void tree_begin_budget(void);

/* Needs the processor time of the threads for calls that COARSE times. */
void tree_need_cpu(void);

/* Needs @writer to write each call.  The reason why it is too late for that, or NULL. */
bool tree_need_writer(const struct path_writer *writer);
const char *tree_writer_is_too_late(void);

/* A profiler that has stated its needs stops recording, or records again: with the last one,
 * the calls stop. */
void tree_leave(void);
void tree_return(void);
/* The same for a profiler that needs paths.  It cannot return if there is a budget now. */
void tree_leave_paths(void);
bool tree_return_paths(const char *profiler);
/* The number of profilers that use the tree now. */
unsigned tree_users(void);

/* Begins the tree.  It is the @begin of the entries of all profilers with needs. */
void tree_begin(void);

/* Needs hooks that look back from the start, as they do after a restart. */
void tree_need_look_back(void);

/* The user chose calltree; other profilers need only its tree. */
extern bool tree_is_asked;

#endif
