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
enum sigtrap_owner { TRAP_NOT_OURS, TRAP_OURS, TRAP_STAYS };
TOPIC(sigtrap_taken, uintptr_t address, ucontext_t *context, enum sigtrap_owner *whose);

/* The handler is in place.  Once it was, it may be stopped but not started again. */
bool sigtrap_start(void);
/* The same while the program runs; false, and it is said, if a thread of it blocks
 * the signal. */
bool sigtrap_start_late(void);
/* The program has its signal back; false if it had it. */
bool sigtrap_stop(void);
bool sigtrap_is_on(void);

#endif
