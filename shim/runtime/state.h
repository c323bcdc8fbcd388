/*
 * The state of shim, and the one way to do slow work inside a program.
 *
 * There is one lock.  Its holder has all signals blocked and runs on a stack of shim: the
 * program's stack may have one page.  The work under the lock calls no module and no
 * function of libc.  A thread that forks holds the lock, too, but other threads may take it
 * after a time (state.c).
 */
#ifndef SHIM_STATE_H
#define SHIM_STATE_H

#include "os/assert.h"
#include "runtime/subscribe.h"

#include <stdbool.h>

/* LOADED becomes RUNNING or OFF, once. */
enum state { STATE_LOADED, STATE_RUNNING, STATE_OFF };

enum state state_get(void);

/* Starts shim unless another call has; returns after the state is RUNNING or OFF. */
void state_start(void);

/* shim starts, with the lock held; raised once.  Subscribers start the rooms above.  A
 * subscriber sets *@runs if shim will record. */
TOPIC(starting, bool *runs);
/* shim cannot take the lock to start; raised instead of @starting. */
TOPIC(start_failed, void);

/* Takes the lock and returns the result of work(argument); -EPERM without a call of
 * @work if system calls are forbidden.  The holder of the lock may call it again. */
int state_call_locked(int (*work)(void *argument), void *argument);

/* Does the same in a signal handler that has all signals blocked.  It makes no system call
 * to block them, because that call could fail. */
int state_call_locked_in_handler(int (*work)(void *argument), void *argument);

/*
 * Whether main has begun.  Before main only constructors run, of shim and of the program.
 * Always false if libc does not start the program (it has its own _start), and if the
 * program has loaded shim by dlopen.  Async.
 */
bool state_main_started(void);
void state_begin_main(void);

/* Whether the calling thread holds the lock. */
bool state_is_held(void);

/* Stands at the beginning of each function whose caller must hold the lock. */
#define ASSERT_LOCKED() SHIM_ASSERT(state_is_protected())

#ifdef SHIM_ASSERTIONS
/* Whether the calling thread holds the lock or needs no lock.  It needs none before
 * shim has started, and when system calls are forbidden and the owner is unknown. */
bool state_is_protected(void);
#else
static inline bool state_is_protected(void)
{
	return true;
}
#endif

/* The parent calls these before and after a fork: no other thread works under the lock
 * between them. */
void state_fork_begins(void);
void state_fork_ended(void);

/* The forked child calls it first.  Frees the lock.  False if another thread of the parent
 * was working under the lock: the data that the lock protects may be inconsistent. */
bool state_forked(void);

#endif
