/*
 * The state of shim, and the one way to do slow work inside a program.
 *
 * There is one lock.  Its holder has all signals blocked and runs on a stack of
 * shim, so that a program with a stack of one page is safe and the work may use
 * ordinary C.  It calls no module and no function of libc.  A thread that forks
 * holds the lock too, but others may take it after a time (state.c).
 */
#ifndef SHIM_STATE_H
#define SHIM_STATE_H

#include "os/assert.h"
#include "runtime/subscribe.h"

#include <stdbool.h>

/* LOADED becomes RUNNING or OFF, once. */
enum state { STATE_LOADED, STATE_RUNNING, STATE_OFF };

enum state state_get(void);

/* Starts shim unless that was done; returns when it runs or is off. */
void state_start(void);

/* Starts the rooms above, once, with the lock held.  A subscriber sets *@runs if shim
 * will record. */
TOPIC(starting, bool *runs);
/* Instead, if the lock cannot be taken. */
TOPIC(start_failed, void);

/* Runs work(argument) as described above; returns what it returns, or -EPERM
 * without calling it when system calls are forbidden. */
int state_slowly(int (*work)(void *argument), void *argument);

/* The same in a signal handler that has all signals blocked: it makes no system call
 * to block them, which could fail. */
int state_quietly(int (*work)(void *argument), void *argument);

/*
 * Whether main has begun.  Until then only constructors run, shim's own and the
 * program's.  Never true for a program that libc does not start (it has its own
 * _start, or loaded shim with dlopen).  Async.
 */
bool state_main_started(void);
void state_begin_main(void);

/* Whether the calling thread has the lock. */
bool state_is_held(void);

/* At the beginning of each function whose caller must hold the lock. */
#define ASSERT_LOCKED() SHIM_ASSERT(state_is_protected())

#ifdef SHIM_ASSERTIONS
/* Whether the calling thread has the lock or needs none: shim has not started, or
 * the owner is unknown because system calls are forbidden. */
bool state_is_protected(void);
#else
static inline bool state_is_protected(void)
{
	return true;
}
#endif

/* Around a fork, in the parent: other threads work before or after it. */
void state_fork_begins(void);
void state_fork_ended(void);

/* Called first in a forked child.  False: another thread of the parent was at work
 * under the lock, so the data that it protects may be inconsistent. */
bool state_forked(void);

#endif
