/*
 * SIGTRAP, while lines are looked at (coverage.h): ours, and the program does not
 * see it (runtime/kept_signals.h).
 */
#ifndef SHIM_SIGTRAP_H
#define SHIM_SIGTRAP_H

#include "runtime/subscribe.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* A thread has run into a trap at @address.  Whoever has set it says so: it goes on
 * with @context, or the trap is there for good. */
enum trap_owner { TRAP_NOT_OURS, TRAP_OURS, TRAP_STAYS };
TOPIC(trap_taken, uintptr_t address, ucontext_t *context, enum trap_owner *whose);

/* The handler is in place.  Once it was, it may be stopped but not started again. */
bool trap_start(void);
/* The same while the program runs; false, and it is said, if a thread of it blocks
 * the signal. */
bool trap_start_late(void);
/* The program has its signal back; false if it had it. */
bool trap_stop(void);
bool trap_is_on(void);

#endif
