/* Checks profilers in separate libraries before the program loads them. */
#ifndef RUN_MODULES_H
#define RUN_MODULES_H

#include <stdbool.h>

#include "program.h"
#include "settings.h"

/*
 * modules_check - refuse modules that cannot record (status 2)
 *
 * Each module of @settings, or of SHIM_PROFILE, is opened in a new process.  If the
 * module is not found, cannot be loaded or crashes, a message says why, and this
 * function does not return.  (A module may lack a symbol that the program has.)  Paths
 * become absolute.
 */
void modules_check(struct settings *settings, const struct program *program);

#endif
