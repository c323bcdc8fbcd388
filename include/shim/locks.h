/*
 * Locks: who waits for them, and who was refused.
 *
 * A profiler that wants them enables them while it is set up and gets three
 * events (<shim/events.def>): lock_contention when the calling thread is about to
 * wait, then lock_acquired or lock_failed.  They come from pthread mutexes,
 * read-write locks, condition variables and spinlocks, from semaphores, and from
 * the mutexes and condition variables of <threads.h> and C++, which are those.  A
 * lock that is free is no event, nor are those of callbacks, slow hooks and threads
 * of profilers, of libc's own locks (stdio, malloc, the loader), and of what
 * programs build from futexes themselves (std::atomic::wait, std::latch).
 *
 * If nobody enables them the program calls libc as it always did.  A wait that the
 * thread leaves by cancellation, by longjmp or by an exception out of a signal
 * handler has no second event.  Waits before profilers are set up are not told.
 */
#ifndef SHIM_LOCKS_H
#define SHIM_LOCKS_H

#include <shim/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

enum shim_lock_kind {
	SHIM_LOCK_MUTEX = 0,
	SHIM_LOCK_READ = 1,		/* a read-write lock, to read ... */
	SHIM_LOCK_WRITE = 2,		/* ... and to write */
	/* Every wait for one: being signalled, and getting the mutex again. */
	SHIM_LOCK_CONDITION = 3,
	SHIM_LOCK_SEMAPHORE = 4,
	SHIM_LOCK_SPIN = 5,
};

/*
 * What an event is about.  It is valid while the callback runs, and at the same
 * address in the events of one wait: in the frame of the call that waits.
 */
struct shim_lock {
	uintptr_t address;	/* of the mutex, condition, ... */
	uintptr_t mutex;	/* of a condition; else 0 */
	uint32_t kind;		/* enum shim_lock_kind */
	/* Of lock_failed, as errno has it: EBUSY (only tried), ETIMEDOUT, EINTR,
	 * EDEADLK, ...  Else 0. */
	int32_t error;
	/* By shim_clock_read(), or the coarse clock where that is closed: when it was
	 * found taken (0: only tried), and when that ended; 0: not yet. */
	uint64_t began;
	uint64_t ended;
	/* A word of this wait, 0 at first, for the profilers that are part of
	 * shim: others leave it alone. */
	uint64_t note;
};

/*
 * shim_profiler_enable_locks - ask for the events of locks
 *
 * Without it they are not raised.  For the whole process, whichever handle asked, and
 * from then on; for a module that is attached, when its init function has returned:
 * of a wait that had begun by then nothing is told (row P-65).
 *
 * Returns SHIM_OK, also to those who come later; SHIM_E_INVALIDARG;
 * SHIM_E_CALL_ONLY_FROM_INIT; SHIM_E_PROFILER_DETACHING.
 *
 * Contract: init.
 */
SHIM_API enum shim_result
shim_profiler_enable_locks(SHIM_IN struct shim_profiler_handle *handle) SHIM_INIT;

/*
 * shim_lock_holder - which task holds the lock now
 *
 * *@tid gets its number as the system has it: of a mutex its owner, of a read-write
 * lock its writer.  @lock is that of an event.
 *
 * Returns SHIM_OK; SHIM_S_FALSE and 0 if nobody holds it or that cannot be known:
 * of readers, conditions, semaphores and spinlocks; SHIM_E_INVALIDARG;
 * SHIM_E_PROFILER_DETACHING.
 *
 * Contract: async.  Takes no lock: by the time it returns it may be another's.
 */
SHIM_API enum shim_result
shim_lock_holder(SHIM_IN const struct shim_lock *lock,
		 SHIM_OUT uint32_t *tid) SHIM_ASYNC;

#ifdef __cplusplus
}
#endif
#endif
