/*
 * SIGTRAP, while lines are looked at (coverage.h): ours, and the program does not
 * see it.  What it sets for the signal is kept, and used when one comes that is not
 * ours; what it blocks is remembered (hidden.h), for the signal itself may never be
 * blocked: the kernel ends a program that runs into a trap then.
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
/* The program has its signal back; false if it had it. */
bool trap_stop(void);
bool trap_is_on(void);

/* What the program has set, as the kernel has it; @action may be NULL. */
struct sys_action;
void trap_swap_action(const struct sys_action *action, struct sys_action *before);

/* What sigaction does for SIGTRAP; either may be NULL. */
void trap_set_action(const struct sigaction *action, struct sigaction *before);

/* The calling thread is about to execute another program, which is to find the
 * signal as the program would have left it; it could not. */
void trap_exec_begins(void);
void trap_exec_failed(void);

#endif
