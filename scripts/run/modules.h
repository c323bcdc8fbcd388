/* Profilers in libraries of their own, before the program gets to load them. */
#ifndef RUN_MODULES_H
#define RUN_MODULES_H

#include <stdbool.h>

#include "program.h"
#include "settings.h"

/*
 * modules_check - leave out what would only do harm
 *
 * Each module of @settings, or of SHIM_PROFILE, is opened in a process made for
 * it.  One that is not there or that breaks this process is taken off the list,
 * and a message says so.  (One that cannot be loaded for another reason stays:
 * the program may have what it lacks, and if not, the library says why.)
 *
 * Returns whether there is anything left to profile with.
 */
bool modules_check(struct settings *settings, const struct program *program);

/* modules_try - that process: opens the module @item, returns its status */
int modules_try(const char *library, const char *item);

#endif
