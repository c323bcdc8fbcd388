/*
 * Locks: from the doors of edge/mutex.c to those who want events.
 */
#ifndef SHIM_EDGE_LOCK_EVENTS_H
#define SHIM_EDGE_LOCK_EVENTS_H

#include <shim/locks.h>
#include <stdbool.h>

/* Around the call that waits; @error: what came of it, 0 if the lock is ours. */
void locks_wait_begins(struct shim_lock *lock, const volatile void *address,
		       enum shim_lock_kind kind, const void *mutex);
void locks_wait_ended(struct shim_lock *lock, int error);

/* A call that did not wait has failed. */
void locks_failed(const volatile void *address, enum shim_lock_kind kind,
		  int error);

/* Profilers have been set up: are locks told?  Decided when somebody has asked, or
 * this was the last chance. */
bool locks_decide(bool is_last_chance);

/* Somebody has asked when that was over; and they are told from now on. */
bool locks_wait_for_late(void);
void locks_begin_late(void);
bool locks_are_told(void);

#endif
