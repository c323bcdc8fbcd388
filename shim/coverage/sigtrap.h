/*
 * Handles SIGTRAP while lines are recorded (coverage.h).  The handler is hidden from
 * the program (runtime/kept_signals.h).
 */
#ifndef SHIM_SIGTRAP_H
#define SHIM_SIGTRAP_H

#include "runtime/subscribe.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* A thread has hit a trap at @address.  The subscriber that has set it changes @context
 * and sets *@whose: TRAP_OURS, the thread continues; TRAP_STAYS, the trap cannot be
 * removed. */
enum sigtrap_owner { TRAP_NOT_OURS, TRAP_OURS, TRAP_STAYS };
TOPIC(sigtrap_taken, uintptr_t address, ucontext_t *context,
      enum sigtrap_owner *whose);

/* Installs the handler; false on failure.  It cannot be installed again after
 * sigtrap_stop. */
bool sigtrap_start(void);
/* Does the same while the program runs.  False, with a line in the log, if a thread of
 * the program blocks the signal. */
bool sigtrap_start_late(void);
/* The same after a detach, during which the program may have set another handler or blocked
 * the signal. */
bool sigtrap_start_again(void);
/* Only its handler; for sigtrap_late.c. */
bool sigtrap_install_again(void);
/* Gives the signal back to the program; false if shim had not taken it. */
bool sigtrap_stop(void);
bool sigtrap_is_on(void);

#endif
