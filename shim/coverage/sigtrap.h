/*
 * SIGTRAP, while lines are looked at (coverage.h): ours, and the program does not
 * see it (runtime/kept_signals.h).
 */
#ifndef SHIM_SIGTRAP_H
#define SHIM_SIGTRAP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* The handler is in place.  Once it was, it may be stopped but not started again. */
bool trap_start(void);
/* The same while the program runs; false, and it is said, if a thread of it blocks
 * the signal. */
bool trap_start_late(void);
/* The program has its signal back; false if it had it. */
bool trap_stop(void);
bool trap_is_on(void);

#endif
