/*
 * Wrappers of the functions that take locks.  A call first tries to take the lock.  If
 * it must wait, it raises events before and after the wait.
 *
 * Each wrapper is one load and a jump.  A call through a GOT slot costs less: the slot
 * leads to the function that tries; or to libc, if no profiler has enabled locks
 * (dispatch/got_slots.h).  The result, errno, and cancellation are as in libc: if a try
 * would have another result than libc's function, the call goes to libc at once.
 *
 * libc has two versions of condition variables.  Both have the same size and begin as
 * zeros, but one version cannot handle the other's variables.  So all functions of
 * condition variables have wrappers, which call the newer version.
 */
#define _GNU_SOURCE
#include "edge/edge.h"

#include "dispatch/got_slots.h"
#include "edge/lock_events.h"
#include "module/module.h"
#include "os/lookup.h"
#include "runtime/log.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <shim/cpu.h>
#include <threads.h>
#include <time.h>

#include <shim/banned.h>

#define COLD __attribute__((cold, noinline))
#define LINE __attribute__((aligned(64))) /* of the instruction cache */

typedef const struct timespec *deadline;

/* function(result, name, parameters, arguments) */
#define EACH_TRIED(F) \
	F(int, pthread_mutex_lock, (pthread_mutex_t * l), (l)) \
	F(int, pthread_mutex_trylock, (pthread_mutex_t * l), (l)) \
	F(int, pthread_mutex_timedlock, (pthread_mutex_t * l, deadline t), \
	  (l, t)) \
	F(int, pthread_mutex_clocklock, \
	  (pthread_mutex_t * l, clockid_t c, deadline t), (l, c, t)) \
	F(int, pthread_rwlock_rdlock, (pthread_rwlock_t * l), (l)) \
	F(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t * l), (l)) \
	F(int, pthread_rwlock_timedrdlock, (pthread_rwlock_t * l, deadline t), \
	  (l, t)) \
	F(int, pthread_rwlock_clockrdlock, \
	  (pthread_rwlock_t * l, clockid_t c, deadline t), (l, c, t)) \
	F(int, pthread_rwlock_wrlock, (pthread_rwlock_t * l), (l)) \
	F(int, pthread_rwlock_trywrlock, (pthread_rwlock_t * l), (l)) \
	F(int, pthread_rwlock_timedwrlock, (pthread_rwlock_t * l, deadline t), \
	  (l, t)) \
	F(int, pthread_rwlock_clockwrlock, \
	  (pthread_rwlock_t * l, clockid_t c, deadline t), (l, c, t)) \
	F(int, pthread_spin_lock, (pthread_spinlock_t * l), (l)) \
	F(int, pthread_spin_trylock, (pthread_spinlock_t * l), (l)) \
	F(int, sem_wait, (sem_t * l), (l)) \
	F(int, sem_trywait, (sem_t * l), (l)) \
	F(int, sem_timedwait, (sem_t * l, deadline t), (l, t)) \
	F(int, sem_clockwait, (sem_t * l, clockid_t c, deadline t), (l, c, t)) \
	F(int, mtx_lock, (mtx_t * l), (l)) \
	F(int, mtx_trylock, (mtx_t * l), (l)) \
	F(int, mtx_timedlock, (mtx_t * l, deadline t), (l, t))

#define EACH_CONDITION(F) \
	F(int, pthread_cond_wait, (pthread_cond_t * l, pthread_mutex_t * m), \
	  (l, m)) \
	F(int, pthread_cond_timedwait, \
	  (pthread_cond_t * l, pthread_mutex_t * m, deadline t), (l, m, t)) \
	F(int, pthread_cond_clockwait, \
	  (pthread_cond_t * l, pthread_mutex_t * m, clockid_t c, deadline t), \
	  (l, m, c, t)) \
	F(int, cnd_wait, (cnd_t * l, mtx_t * m), (l, m)) \
	F(int, cnd_timedwait, (cnd_t * l, mtx_t * m, deadline t), (l, m, t))

/* These have wrappers only to call the same version of condition variables. */
#define EACH_OTHER(F) \
	F(int, pthread_cond_init, \
	  (pthread_cond_t * l, const pthread_condattr_t *a), (l, a)) \
	F(int, pthread_cond_destroy, (pthread_cond_t * l), (l)) \
	F(int, pthread_cond_signal, (pthread_cond_t * l), (l)) \
	F(int, pthread_cond_broadcast, (pthread_cond_t * l), (l))

#define EACH(F) EACH_TRIED(F) EACH_CONDITION(F) EACH_OTHER(F)

struct functions {
#define FIELD(result, name, parameters, arguments) result(*name) parameters;
	EACH(FIELD)
#undef FIELD
};

/* The definitions after shim's, usually libc's. */
static struct functions next;

/* --- results as errors: 0 if the call got the lock --- */

static int of_c11(int result)
{
	return result == thrd_success  ? 0 :
	       result == thrd_busy     ? EBUSY :
	       result == thrd_timedout ? ETIMEDOUT :
	       result == thrd_nomem    ? ENOMEM :
					 EINVAL;
}

/* EOWNERDEAD: the last holder ended without unlocking, and the caller has the lock now. */
static int of_pthread(int result)
{
	return result == EOWNERDEAD ? 0 : result;
}

static int of_semaphore(int result)
{
	return result == 0 ? 0 : errno;
}

/* --- calls that raise events: they try, wait, or fail --- */

/*
 * WAIT(name, ...) defines the call that has to wait.  DIRECT(name, ...) defines the
 * call of libc without a try; it does not wait, and may fail.
 */
#define WAIT(kind, mutex, outcome, name, parameters, arguments) \
	static COLD int wait_##name parameters \
	{ \
		struct shim_lock lock; \
		int result; \
\
		locks_wait_begins(&lock, l, kind, mutex); \
		result = next.name arguments; \
		locks_wait_ended(&lock, outcome(result)); \
		return result; \
	}

#define DIRECT(kind, outcome, name, parameters, arguments) \
	static int direct_##name parameters \
	{ \
		int result = next.name arguments; \
\
		if (__builtin_expect(result == 0, 1)) \
			return 0; \
		if (outcome(result) != 0) \
			locks_failed(l, kind, outcome(result)); \
		return result; \
	}

/* If @tries is false, the function calls libc at once: libc checks its arguments first,
 * or is faster. */
#define TRY(kind, outcome, busy, tried, tries, name, parameters, arguments) \
	WAIT(kind, NULL, outcome, name, parameters, arguments) \
	DIRECT(kind, outcome, name, parameters, arguments) \
	static LINE int watched_##name parameters \
	{ \
		int result; \
\
		if (tries) { \
			result = tried(l); \
			if (__builtin_expect(result == 0, 1)) \
				return 0; \
			if (result == (busy)) \
				return wait_##name arguments; \
			if (outcome(result) == 0) \
				return result; \
		} \
		return direct_##name arguments; \
	}

#define ONLY_TRY(kind, outcome, name, parameters, arguments) \
	static int watched_##name parameters \
	{ \
		int result = next.name arguments; \
\
		if (__builtin_expect(outcome(result) != 0, 0)) \
			locks_failed(l, kind, outcome(result)); \
		return result; \
	}

static bool is_clock(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

static bool is_time(deadline time)
{
	return time && time->tv_nsec >= 0 && time->tv_nsec < 1000000000;
}

#ifdef __GLIBC__
#define KIND_ROBUST 16
#define KIND_SHARED 128

/* Whether a robust mutex is free.  A try would be wrong: if a robust mutex is not
 * recoverable, glibc's trylock refuses it but leaves it locked, and the next call would
 * wait for ever. */
static bool looks_free(const pthread_mutex_t *mutex)
{
	return (__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) &
		FUTEX_TID_MASK) == 0;
}
#endif

/*
 * Whether to call libc without a try.  While the process has one thread, libc's lock of
 * a free mutex is faster than its trylock, and no other thread can take the mutex in
 * between.  shim never tries a robust mutex; if another thread takes a free one in
 * between, the wait raises no event.
 */
static inline bool use_libc(const void *lock)
{
#ifdef __GLIBC__
	const pthread_mutex_t *mutex = lock; /* mtx_t has the same layout */
	int kind = mutex->__data.__kind;

	if (__builtin_expect(kind & KIND_ROBUST, 0))
		return looks_free(mutex);
	return shim_is_single_threaded() && mutex->__data.__lock == 0 &&
	       (kind & KIND_SHARED) == 0;
#else
	(void)lock;
	return false;
#endif
}

static inline bool is_robust(const void *lock)
{
#ifdef __GLIBC__
	return ((const pthread_mutex_t *)lock)->__data.__kind & KIND_ROBUST;
#else
	(void)lock;
	return false;
#endif
}

static int try_mutex(pthread_mutex_t *mutex)
{
	return is_robust(mutex) ? EBUSY : next.pthread_mutex_trylock(mutex);
}

/*
 * Whether to try by a timed call.  A timed call whose time has passed takes a free lock,
 * and returns ETIMEDOUT for another lock without a system call.  In libc it is as fast
 * as rdlock; tryrdlock is slower.
 */
static bool reads_by_time;

static inline __attribute__((always_inline)) int
try_read(pthread_rwlock_t *lock)
{
	static const struct timespec over = { .tv_sec = -1 };
	int result;

	if (__builtin_expect(!reads_by_time, 0))
		return next.pthread_rwlock_tryrdlock(lock);
	result = next.pthread_rwlock_timedrdlock(lock, &over);
	/* tryrdlock does not return EDEADLK to the writer either. */
	return result == ETIMEDOUT || result == EDEADLK ? EBUSY : result;
}

/* Both functions must belong to one library: a library that wraps only one of them, to
 * count held locks, would count wrongly. */
static void choose_tries(void)
{
	Dl_info locks, times;

	reads_by_time = dladdr((void *)next.pthread_rwlock_rdlock, &locks) &&
			dladdr((void *)next.pthread_rwlock_timedrdlock,
			       &times) &&
			locks.dli_fbase == times.dli_fbase;
}

#define MUTEX(plain, name, parameters, arguments) \
	TRY(SHIM_LOCK_MUTEX, of_pthread, EBUSY, try_mutex, plain, name, \
	    parameters, arguments)
#define READ(plain, name, parameters, arguments) \
	TRY(SHIM_LOCK_READ, of_pthread, EBUSY, try_read, plain, name, \
	    parameters, arguments)
#define WRITE(plain, name, parameters, arguments) \
	TRY(SHIM_LOCK_WRITE, of_pthread, EBUSY, next.pthread_rwlock_trywrlock, \
	    plain, name, parameters, arguments)

MUTEX(!use_libc(l), pthread_mutex_lock, (pthread_mutex_t * l), (l))
MUTEX(!use_libc(l), pthread_mutex_timedlock, (pthread_mutex_t * l, deadline t),
      (l, t))
MUTEX(is_clock(c) && !use_libc(l), pthread_mutex_clocklock,
      (pthread_mutex_t * l, clockid_t c, deadline t), (l, c, t))
ONLY_TRY(SHIM_LOCK_MUTEX, of_pthread, pthread_mutex_trylock,
	 (pthread_mutex_t * l), (l))

READ(true, pthread_rwlock_rdlock, (pthread_rwlock_t * l), (l))
READ(is_time(t), pthread_rwlock_timedrdlock, (pthread_rwlock_t * l, deadline t),
     (l, t))
READ(is_clock(c) && is_time(t), pthread_rwlock_clockrdlock,
     (pthread_rwlock_t * l, clockid_t c, deadline t), (l, c, t))
ONLY_TRY(SHIM_LOCK_READ, of_pthread, pthread_rwlock_tryrdlock,
	 (pthread_rwlock_t * l), (l))

WRITE(true, pthread_rwlock_wrlock, (pthread_rwlock_t * l), (l))
WRITE(is_time(t), pthread_rwlock_timedwrlock,
      (pthread_rwlock_t * l, deadline t), (l, t))
WRITE(is_clock(c) && is_time(t), pthread_rwlock_clockwrlock,
      (pthread_rwlock_t * l, clockid_t c, deadline t), (l, c, t))
ONLY_TRY(SHIM_LOCK_WRITE, of_pthread, pthread_rwlock_trywrlock,
	 (pthread_rwlock_t * l), (l))

TRY(SHIM_LOCK_SPIN, of_pthread, EBUSY, next.pthread_spin_trylock, true,
    pthread_spin_lock, (pthread_spinlock_t * l), (l))
ONLY_TRY(SHIM_LOCK_SPIN, of_pthread, pthread_spin_trylock,
	 (pthread_spinlock_t * l), (l))

TRY(SHIM_LOCK_MUTEX, of_c11, thrd_busy, next.mtx_trylock, !use_libc(l),
    mtx_lock, (mtx_t * l), (l))
TRY(SHIM_LOCK_MUTEX, of_c11, thrd_busy, next.mtx_trylock, !use_libc(l),
    mtx_timedlock, (mtx_t * l, deadline t), (l, t))
ONLY_TRY(SHIM_LOCK_MUTEX, of_c11, mtx_trylock, (mtx_t * l), (l))

/* Functions of semaphores return errors in errno, and are cancellation points even if
 * they do not wait. */
static inline int try_semaphore(sem_t *l)
{
	int *error = &errno, before = *error;
	int result;

	pthread_testcancel();
	result = next.sem_trywait(l);
	if (__builtin_expect(result == 0, 1))
		return 0;
	result = *error;
	*error = before;
	return result;
}

#define SEMAPHORE(tries, name, parameters, arguments) \
	WAIT(SHIM_LOCK_SEMAPHORE, NULL, of_semaphore, name, parameters, \
	     arguments) \
	DIRECT(SHIM_LOCK_SEMAPHORE, of_semaphore, name, parameters, arguments) \
	static int watched_##name parameters \
	{ \
		int error = tries ? try_semaphore(l) : EINVAL; \
\
		if (__builtin_expect(error == 0, 1)) \
			return 0; \
		return error == EAGAIN ? wait_##name arguments : \
					 direct_##name arguments; \
	}

SEMAPHORE(true, sem_wait, (sem_t * l), (l))
SEMAPHORE(is_time(t), sem_timedwait, (sem_t * l, deadline t), (l, t))
SEMAPHORE((is_clock(c) && is_time(t)), sem_clockwait,
	  (sem_t * l, clockid_t c, deadline t), (l, c, t))
ONLY_TRY(SHIM_LOCK_SEMAPHORE, of_semaphore, sem_trywait, (sem_t * l), (l))

#define CONDITION(outcome, name, parameters, arguments) \
	WAIT(SHIM_LOCK_CONDITION, m, outcome, name, parameters, arguments) \
	static int watched_##name parameters \
	{ \
		return wait_##name arguments; \
	}

CONDITION(of_pthread, pthread_cond_wait,
	  (pthread_cond_t * l, pthread_mutex_t *m), (l, m))
CONDITION(of_pthread, pthread_cond_timedwait,
	  (pthread_cond_t * l, pthread_mutex_t *m, deadline t), (l, m, t))
CONDITION(of_pthread, pthread_cond_clockwait,
	  (pthread_cond_t * l, pthread_mutex_t *m, clockid_t c, deadline t),
	  (l, m, c, t))
CONDITION(of_c11, cnd_wait, (cnd_t * l, mtx_t *m), (l, m))
CONDITION(of_c11, cnd_timedwait, (cnd_t * l, mtx_t *m, deadline t), (l, m, t))

/* --- calls before the start --- */

/* The loader may call an allocator that uses locks. */
#define EARLY(result, name, parameters, arguments) \
	static COLD result early_##name parameters \
	{ \
		result(*real) \
			parameters = (result(*) parameters)lookup_real(#name); \
\
		return real ? real arguments : ENOSYS; \
	}
EACH(EARLY)
#undef EARLY

/* --- the wrappers: each jumps through this table --- */

static struct functions active = {
#define BEGIN(result, name, parameters, arguments) .name = early_##name,
	EACH(BEGIN)
#undef BEGIN
};

#define WRAPPER(result, name, parameters, arguments) \
	EDGE result name parameters; \
	result name parameters \
	{ \
		return active.name arguments; \
	}
EACH(WRAPPER)
#undef WRAPPER

#define SET_ACTIVE(name, to) \
	__atomic_store_n(&active.name, to, __ATOMIC_RELEASE)

/* Finds all functions before it stores one in the table, because they call each other. */
void edge_locks_resolve(void)
{
#define FIND(result, name, parameters, arguments) \
	next.name = (result(*) parameters)lookup_real(#name);
	EACH(FIND)
#undef FIND
#define SET_NEXT(result, name, parameters, arguments) \
	if (next.name) \
		SET_ACTIVE(name, next.name);
	EACH(SET_NEXT)
#undef SET_NEXT
}

/* --- whether they raise events --- */

static bool shim_is_first(void)
{
	if (lookup_was_attached())
		return lookup_first("pthread_mutex_lock") ==
		       lookup_libc("pthread_mutex_lock");
	return lookup_first("pthread_mutex_lock") == (void *)pthread_mutex_lock;
}

/* Points all GOT slots at the functions in the wrappers' table. */
static void bypass_wrappers(void)
{
	struct got_slots_function functions[SLOTS_FUNCTIONS] = { 0 };
	unsigned count = 0;

#define PASS(result, name, parameters, arguments) \
	functions[count++] = (struct got_slots_function){ \
		#name, (void *)name, (void *)active.name \
	};
	EACH(PASS)
#undef PASS
	got_slots_bypass(SLOTS_LOCKS, functions, shim_is_first());
}

static bool is_complete(void)
{
#define HAS(result, name, parameters, arguments) &&next.name
	return true EACH(HAS);
#undef HAS
}

static void raise_events(void)
{
	if (!is_complete()) {
		log_line("%s",
			 "the C library lacks some functions of locks: shim "
			 "records no locks");
		return;
	}
	/* The functions of a sanitizer call shim's functions. */
	if (!shim_is_first())
		log_line("%s",
			 "the program defines lock functions of its own: shim "
			 "sees only calls that they pass on to libc");
	choose_tries();
#define SET_WATCHED(result, name, parameters, arguments) \
	SET_ACTIVE(name, watched_##name);
	EACH_TRIED(SET_WATCHED)
	EACH_CONDITION(SET_WATCHED)
#undef SET_WATCHED
}

void edge_locks_decide(bool is_last_chance)
{
	static bool decided;

	if (decided || !locks_decide(is_last_chance))
		return;
	decided = true;
	if (locks_raise_events())
		raise_events();
	bypass_wrappers();
}

/* The wrappers come first.  Until the last step, a call may raise its events or not. */
static void begin_late(void)
{
	if (!locks_wait_for_late())
		return;
	raise_events();
	bypass_wrappers();
	locks_begin_late();
}

SUBSCRIBE(module_attached, begin_late);
