/* Profilers in libraries of their own, before the program gets to load them. */
#ifndef RUN_MODULES_H
#define RUN_MODULES_H

#include <stdbool.h>

#include "program.h"
#include "settings.h"

/*
 * modules_check - refuse what cannot be recorded (status 2)
 *
 * Each module of @settings, or of SHIM_PROFILE, is opened in a process made for
 * it.  If that does not find it, cannot load it or breaks, a message says why,
 * and this does not return.  (A module that lacks a symbol which the program has
 * is good.)  Paths become absolute.
 */
void modules_check(struct settings *settings, const struct program *program);

#endif
