/*
 * The signals that profilers have asked for (<shim/signals.h>); edge/caught_signals.c has them
 * caught once libc can be used.
 */
#ifndef ASKED_H
#define ASKED_H

#include <stdint.h>

/* Has all of them caught, and each that comes later, by @establish. */
void user_signals_load(void (*establish)(int signal));

#endif
