/*
 * Locks: waits for locks, and failed attempts to take one.
 *
 * A profiler enables them in its init function and gets three events
 * (<shim/events.def>): lock_contention when the calling thread is about to
 * wait, then lock_acquired or lock_failed.  Events come from pthread mutexes,
 * read-write locks, condition variables and spinlocks, from semaphores, and
 * from the mutexes and condition variables of <threads.h> and C++, which use
 * these functions.  No event comes from a lock that is free, from callbacks,
 * slow hooks and threads of profilers, from libc's own locks (stdio, malloc, the
 * loader), and from code that uses futexes directly (std::atomic::wait,
 * std::latch).
 *
 * Unless a profiler enables them, the program calls libc directly.  A wait that
 * ends by cancellation, by longjmp or by an exception out of a signal handler
 * has no second event.  Waits before profilers are set up raise no events.
 *
 * Example: the longest wait, in units of shim_clock_read().
 *
 *     #include <shim/locks.h>
 *
 *     static uint64_t longest;
 *
 *     static void acquired(struct shim_profiler *profiler, struct shim_lock *lock)
 *     {
 *             (void)profiler;
 *             if (lock->ended - lock->began > longest)
 *                     longest = lock->ended - lock->began;
 *     }
 *
 *     SHIM_PROFILER_MODULE(longest)
 *     {
 *             struct shim_profiler_handle *handle = shim_profiler_create(NULL);
 *
 *             shim_profiler_on_lock_acquired(handle, acquired);
 *             return shim_profiler_enable_locks(handle);
 *     }
 */
#ifndef SHIM_LOCKS_H
#define SHIM_LOCKS_H

#include <shim/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

enum shim_lock_kind {
	SHIM_LOCK_MUTEX = 0,
	SHIM_LOCK_READ = 1,  /* a read-write lock, for reading */
	SHIM_LOCK_WRITE = 2, /* a read-write lock, for writing */
	/* A wait for a condition: for its signal, and then for its mutex. */
	SHIM_LOCK_CONDITION = 3,
	SHIM_LOCK_SEMAPHORE = 4,
	SHIM_LOCK_SPIN = 5,
};

/*
 * A wait.  The struct is in the frame of the call that waits: valid while the
 * callback runs, and at the same address in all events of one wait.
 */
struct shim_lock {
	uintptr_t address; /* of the mutex, condition variable, ... */
	uintptr_t mutex;   /* of a condition variable; else 0 */
	uint32_t kind;	   /* enum shim_lock_kind */
	/* In lock_failed an errno: EBUSY (a trylock), ETIMEDOUT, EINTR,
	 * EDEADLK, ...  Else 0. */
	int32_t error;
	/* Begin (0: a trylock) and end (0: not yet) of the wait by
	 * shim_clock_read(), or by the coarse clock if that is closed. */
	uint64_t began;
	uint64_t ended;
	/* A word of this wait, 0 at first.  Reserved for shim's own
	 * profilers. */
	uint64_t note;
};

/*
 * shim_profiler_enable_locks - enable lock events
 *
 * Applies to the whole process from now on, whichever handle calls it.  For a
 * module that is attached, events begin when its init function has returned; a
 * wait that began before raises no event.
 *
 * Returns SHIM_OK, also if locks were enabled; SHIM_E_INVALIDARG for a wrong
 * @handle; SHIM_E_CALL_ONLY_FROM_INIT; SHIM_E_PROFILER_DETACHING.
 *
 * Contract: init.  No counterpart (Mono's monitor events need no such call).
 */
SHIM_API enum shim_result shim_profiler_enable_locks(
	SHIM_IN struct shim_profiler_handle *handle) SHIM_INIT;

/*
 * shim_lock_holder - the task that holds a lock now
 *
 * *@tid gets the kernel's id of the owner of a mutex, or of the writer of a
 * read-write lock.  @lock is that of an event.
 *
 * Returns SHIM_OK; SHIM_S_FALSE, with a *@tid of 0, if no task holds the lock
 * or the holder is unknown (readers, condition variables, semaphores and
 * spinlocks have no known holder); SHIM_E_INVALIDARG for NULL;
 * SHIM_E_PROFILER_DETACHING.
 *
 * Contract: async.  Takes no lock: the holder may have changed when it returns.
 * No counterpart.
 */
SHIM_API enum shim_result shim_lock_holder(SHIM_IN const struct shim_lock *lock,
					   SHIM_OUT uint32_t *tid) SHIM_ASYNC;

#ifdef __cplusplus
}
#endif
#endif
