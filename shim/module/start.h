/*
 * The order of steps when shim starts (runtime/state.h).
 */
#ifndef SHIM_START_H
#define SHIM_START_H

#include <stdbool.h>

/* Whether SHIM_PROFILE has modules.  May be called before shim has started. */
bool start_wants_modules(void);

/* Starts a built-in profiler before main.  Returns the result of builtin_start; -3 also
 * without memory. */
int start_builtin(const char *profile);

#endif
