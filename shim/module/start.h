/*
 * The order of steps when shim starts (runtime/state.h).
 */
#ifndef SHIM_START_H
#define SHIM_START_H

#include <stdbool.h>

/* Whether there are modules to load.  May be called before shim has started. */
bool start_wants_modules(void);

/* Starts a built-in profiler before main, as the list does at the start.  Returns what
 * builtin_start does; also -3 if there is no memory. */
int start_builtin(const char *profile);

#endif
