/*
 * Events of locks.  The wrappers of edge/mutex.c report waits, and these functions
 * raise the events.
 */
#ifndef SHIM_EDGE_LOCK_EVENTS_H
#define SHIM_EDGE_LOCK_EVENTS_H

#include <shim/locks.h>
#include <stdbool.h>

/* Raises lock_contention; called before the call that waits. */
void locks_wait_begins(struct shim_lock *lock, const volatile void *address,
		       enum shim_lock_kind kind, const void *mutex);
/* Raises lock_acquired or lock_failed; called after the call that waits.  @error is the
 * result of that call, 0 if the thread got the lock. */
void locks_wait_ended(struct shim_lock *lock, int error);

/* A call failed without waiting. */
void locks_failed(const volatile void *address, enum shim_lock_kind kind,
		  int error);

/* Called after profilers have been set up: decides whether locks raise events.  True if
 * it has decided: a profiler has enabled locks, or this was the last chance. */
bool locks_decide(bool is_last_chance);

/* Whether a profiler has enabled locks after that decision. */
bool locks_wait_for_late(void);
/* Lets locks raise events from now on. */
void locks_begin_late(void);
/* Whether locks raise events. */
bool locks_raise_events(void);

#endif
