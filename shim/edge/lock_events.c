/*
 * Raises events for the waits that edge/mutex.c reports.  shim decides once, after
 * profilers have been set up, whether locks raise events.  Only a module that is
 * attached later changes that.
 */
#include "edge/lock_events.h"

#include "os/clock.h"
#include "runtime/contract.h"
#include "runtime/events.h"
#include "runtime/state.h"

#include <pthread.h>

#include <shim/banned.h>

enum mode { UNDECIDED, RAISING, IGNORING };

static enum mode mode;
static bool is_requested;

static enum mode get_mode(void)
{
	return __atomic_load_n(&mode, __ATOMIC_ACQUIRE);
}

bool locks_decide(bool is_last_chance)
{
	enum mode now = get_mode();

	if (now == UNDECIDED && is_requested)
		now = RAISING;
	else if (now == UNDECIDED && is_last_chance)
		now = IGNORING;
	__atomic_store_n(&mode, now, __ATOMIC_RELEASE);
	return now != UNDECIDED;
}

bool locks_wait_for_late(void)
{
	return is_requested && get_mode() == IGNORING;
}

void locks_begin_late(void)
{
	__atomic_store_n(&mode, RAISING, __ATOMIC_RELEASE);
}

bool locks_raise_events(void)
{
	return get_mode() == RAISING;
}

/* False in the callbacks, slow hooks and threads of a profiler. */
static bool raises_event(void)
{
	const struct thread *self = thread_current;
	uint32_t state = self ? thread_get_state(self) : 0;

	return get_mode() == RAISING && (state & THREAD_NOT_THE_PROGRAM) == 0;
}

/* --- raising the events --- */

void locks_wait_begins(struct shim_lock *lock, const volatile void *address,
		       enum shim_lock_kind kind, const void *mutex)
{
	*lock = (struct shim_lock){ .address = (uintptr_t)address,
				    .mutex = (uintptr_t)mutex,
				    .kind = kind };
	if (!raises_event())
		return;
	lock->began = clock_read();
	RAISE(lock_contention, lock);
}

void locks_wait_ended(struct shim_lock *lock, int error)
{
	if (lock->began == 0)
		return;
	lock->ended = clock_read();
	lock->error = error;
	if (error)
		RAISE(lock_failed, lock);
	else
		RAISE(lock_acquired, lock);
}

void locks_failed(const volatile void *address, enum shim_lock_kind kind,
		  int error)
{
	struct shim_lock lock = { .address = (uintptr_t)address,
				  .kind = kind,
				  .error = error };

	if (!raises_event())
		return;
	lock.ended = clock_read();
	RAISE(lock_failed, &lock);
}

/* --- enabling them --- */

enum shim_result shim_profiler_enable_locks(struct shim_profiler_handle *handle)
{
	ENTRY_INIT_OF(handle);
	/* The program may enable locks before main, a module during its setup. */
	if (!is_requested && !contract_is_setting_up() &&
	    (get_mode() != UNDECIDED || state_main_started()))
		return contract_refused(SHIM_E_CALL_ONLY_FROM_INIT, __func__,
					__builtin_return_address(0));
	is_requested = true;
	return SHIM_OK;
}

/* --- the holder of a lock --- */

/* The thread id of the lock's holder, 0 if unknown.  libc's headers declare the fields. */
static uint32_t read_holder(const struct shim_lock *lock)
{
#ifdef __GLIBC__
	const pthread_mutex_t *mutex = (const pthread_mutex_t *)lock->address;
	const pthread_rwlock_t *rwlock = (const pthread_rwlock_t *)
						 lock->address;

	if (lock->kind == SHIM_LOCK_MUTEX)
		return (uint32_t)__atomic_load_n(&mutex->__data.__owner,
						 __ATOMIC_RELAXED);
	if (lock->kind == SHIM_LOCK_READ || lock->kind == SHIM_LOCK_WRITE)
		return (uint32_t)__atomic_load_n(&rwlock->__data.__cur_writer,
						 __ATOMIC_RELAXED);
#endif
	(void)lock;
	return 0;
}

enum shim_result shim_lock_holder(const struct shim_lock *lock, uint32_t *tid)
{
	ENTRY_ASYNC();
	if (!lock || !tid)
		return SHIM_E_INVALIDARG;
	*tid = read_holder(lock);
	return *tid ? SHIM_OK : SHIM_S_FALSE;
}
