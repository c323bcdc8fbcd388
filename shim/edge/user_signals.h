/*
 * The signals that profilers have enabled (<shim/signals.h>); edge/caught_signals.c
 * catches them once libc can be used.
 */
#ifndef ASKED_H
#define ASKED_H

#include <stdint.h>

/* Calls @establish for each of them, and for each that is enabled later. */
void user_signals_load(void (*establish)(int signal));

#endif
