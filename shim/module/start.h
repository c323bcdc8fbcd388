/*
 * What happens when shim starts (runtime/state.h), in which order.
 */
#ifndef SHIM_START_H
#define SHIM_START_H

#include <stdbool.h>

/* Whether there will be modules to load.  Before shim has started. */
bool start_wants_modules(void);

/* Before main: starts a profiler that is part of the library as they are started at
 * the beginning.  Returns what builtin_start does (hooks/builtin.c); -3 also without
 * memory. */
int start_builtin(const char *profile);

#endif
