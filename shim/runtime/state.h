/*
 * Where shim stands, and the one way to do something slow inside a program.
 *
 * There is one lock.  Whoever holds it has all signals blocked and runs on a
 * stack of ours, so that a program with a stack of a page is safe and the work
 * may use ordinary C; it calls no module and nothing of libc while it holds
 * it.  A thread that forks holds the lock, too, as well as it can.
 */
#ifndef SHIM_STATE_H
#define SHIM_STATE_H

#include "runtime/subscribe.h"

#include <stdbool.h>

/* LOADED moves to RUNNING or OFF once and stays. */
enum state { STATE_LOADED, STATE_RUNNING, STATE_OFF };

enum state state_get(void);

/* Starts shim if nobody has yet; returns when it runs or is off. */
void state_start(void);

/* Starts all that is above, once, with the lock; sets *@runs if something will be
 * recorded. */
TOPIC(starting, bool *runs);
/* Instead, if not even that can be done. */
TOPIC(start_failed, void);

/* Runs work(argument) as described above; returns what it returns, or -EPERM
 * without calling it when system calls are forbidden. */
int state_slowly(int (*work)(void *argument), void *argument);

/* The same in a signal handler that keeps all signals out itself: it needs no system
 * call for that, which could fail. */
int state_quietly(int (*work)(void *argument), void *argument);

/*
 * Has main begun?  Until then only constructors run, shim's own and the
 * program's.  Never true for a program that libc does not start (it has a
 * _start of its own, or loaded shim with dlopen).  Async.
 */
bool state_main_started(void);
void state_begin_main(void);

/* Whether the calling thread has the lock. */
bool state_is_held(void);

/* Around a fork, in the parent: others do their work before or after it. */
void state_fork_begins(void);
void state_fork_ended(void);

/* In a forked child, first of all.  False: another thread of the parent was in
 * the middle of its work, and what the lock protects is of no use any more. */
bool state_forked(void);

#endif
