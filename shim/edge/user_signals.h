/*
 * The signals that profilers have enabled (<shim/signals.h>).  edge/caught_signals.c
 * catches them after libc is ready.
 */
#ifndef SHIM_USER_SIGNALS_H
#define SHIM_USER_SIGNALS_H

#include <stdint.h>

/* Calls @catch for each enabled signal, and later for each signal that a profiler
 * enables. */
void user_signals_load(void (*catch)(int signal));

#endif
