/*
 * SIGTRAP, while lines are looked at (coverage.h): ours, and the program does not
 * see it.  What it sets for the signal is kept, and used when one comes that is not
 * ours; what it blocks is remembered, for the signal itself may never be blocked:
 * the kernel ends a program that runs into a trap then.  edge_signals.c asks.
 */
#ifndef SHIM_TRAP_H
#define SHIM_TRAP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* The handler is in place.  Once it was, it may be stopped but not started again. */
bool trap_start(void);
/* The same while the program runs; false, and it is said, if a thread of it blocks
 * the signal. */
bool trap_start_late(void);
/* The calling thread has just blocked what was not ours before. */
void trap_adopt(void);
/* The program has its signal back; false if it had it. */
bool trap_stop(void);
bool trap_is_on(void);

/* What sigaction does for SIGTRAP; either may be NULL. */
void trap_set_action(const struct sigaction *action, struct sigaction *before);

/* The calling thread has the signal blocked, as far as it knows. */
bool trap_is_blocked(void);
/* ... and now it has not, or has.  One that waited may come at once. */
void trap_block(bool blocked);
/* Somebody sent one that waits. */
bool trap_is_pending(void);

/* Handlers of @signal are to run with it blocked; the answer from before. */
bool trap_mask_handler(int signal, bool blocked);
bool trap_masks_handler(int signal);

/* The calling thread is about to execute another program, which is to find the
 * signal as the program would have left it; it could not. */
void trap_exec_begins(void);
void trap_exec_failed(void);

#endif
