/*
 * A program that checks its own lock callbacks: locked CASE.  It knows its waits, and
 * prints differences ("wrong: ...").
 *
 * A thread that is to wait always waits: the lock is held until the callback has
 * reported the wait.
 */
#define _GNU_SOURCE
#define SLOT_OF "pthread_mutex_lock"
#include "slot.h"
#include "truth.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <shim/locks.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_enable_locks
#pragma weak shim_profiler_on_lock_contention
#pragma weak shim_profiler_on_lock_failed
#pragma weak shim_profiler_on_lock_acquired
#pragma weak shim_lock_holder

#define CHECK(condition)                                                       \
	do {                                                                   \
		if (!(condition))                                              \
			wrong(#condition, __LINE__);                           \
	} while (0)

QUIET static void wrong(const char *text, long line)
{
	char out[200];

	snprintf(out, sizeof(out), "wrong: %s (%ld)\n", text, line);
	print_text(out);
}

/* --- the callbacks --- */

enum what { CONTENTION, FAILED, ACQUIRED };

struct told {
	enum what what;
	struct shim_lock lock;
	pid_t tid;
	uint32_t holder;
};

static struct told told[64];
static unsigned told_count, looked_at;
static bool callback_locks;
static pthread_mutex_t callbacks_own = PTHREAD_MUTEX_INITIALIZER;

QUIET static void note(enum what what, struct shim_lock *lock)
{
	unsigned at = __atomic_fetch_add(&told_count, 1, __ATOMIC_RELAXED) % 64;
	uint32_t holder = 0;

	shim_lock_holder(lock, &holder);
	told[at] = (struct told){ what, *lock, gettid(), holder };
	if (callback_locks) {
		const struct timespec past = { 0, 0 };

		pthread_mutex_trylock(&callbacks_own);
		CHECK(pthread_mutex_trylock(&callbacks_own) == EBUSY);
		/* A wait, of which neither begin nor end is an event. */
		CHECK(pthread_mutex_timedlock(&callbacks_own, &past) ==
		      ETIMEDOUT);
		pthread_mutex_unlock(&callbacks_own);
	}
	errno = EXDEV;	/* the program must not see this value */
}

QUIET static void on_contention(struct shim_profiler *profiler,
				struct shim_lock *lock)
{
	(void)profiler;
	note(CONTENTION, lock);
}

QUIET static void on_failed(struct shim_profiler *profiler,
			    struct shim_lock *lock)
{
	(void)profiler;
	note(FAILED, lock);
}

QUIET static void on_acquired(struct shim_profiler *profiler,
			      struct shim_lock *lock)
{
	(void)profiler;
	note(ACQUIRED, lock);
}

QUIET static struct told *next(enum what what, const volatile void *address,
			       enum shim_lock_kind kind, long line)
{
	static struct told none;
	struct told *at = &told[looked_at % 64];

	if (looked_at == told_count) {
		wrong("nothing was told", line);
		return &none;
	}
	looked_at++;
	if (at->what != what || at->lock.address != (uintptr_t)address ||
	    at->lock.kind != kind)
		wrong("another thing was told", line);
	return at;
}

#define NEXT(what, address, kind)                                              \
	next(what, address, SHIM_LOCK_##kind, __LINE__)
#define NOTHING_MORE()                                                         \
	do {                                                                   \
		CHECK(looked_at == told_count);                                \
		looked_at = told_count;                                        \
	} while (0)

/* --- another holder --- */

struct other {
	void (*take)(void);
	void (*give)(void);
	unsigned told_before;
	uint32_t tid;
	bool waits_for_nobody;	/* releases on request, not on a wait callback */
	volatile bool has, may_go;
	pthread_t thread;
};

static void nap(void)
{
	struct timespec time = { 0, 200000 };

	nanosleep(&time, NULL);
}

static void *run_other(void *argument)
{
	struct other *other = argument;

	other->take();
	other->tid = (uint32_t)gettid();
	other->told_before = told_count;
	other->has = true;
	while (other->waits_for_nobody ? !other->may_go :
		       __atomic_load_n(&told_count, __ATOMIC_ACQUIRE) ==
			       other->told_before)
		nap();
	/* Wait until the other thread sleeps. */
	for (int i = 0; i < 25; i++)
		nap();
	other->give();
	return NULL;
}

static void begin_other(struct other *other, void (*take)(void),
			void (*give)(void), bool waits_for_nobody)
{
	*other = (struct other){ .take = take, .give = give,
				 .waits_for_nobody = waits_for_nobody };
	pthread_create(&other->thread, NULL, run_other, other);
	while (!other->has)
		nap();
}

static void end_other(struct other *other)
{
	other->may_go = true;
	pthread_join(other->thread, NULL);
}

static struct timespec in(clockid_t clock, long ms)
{
	struct timespec time;

	clock_gettime(clock, &time);
	time.tv_nsec += ms * 1000000;
	time.tv_sec += time.tv_nsec / 1000000000;
	time.tv_nsec %= 1000000000;
	return time;
}

/* --- the locks --- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static mtx_t c11;
static cnd_t c11_condition;

#define PAIR(name, take, give)                                                 \
	static void take_##name(void) { CHECK(take == 0); }                    \
	static void give_##name(void) { CHECK(give == 0); }

PAIR(mutex, pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex))
PAIR(write, pthread_rwlock_wrlock(&rwlock), pthread_rwlock_unlock(&rwlock))
PAIR(read, pthread_rwlock_rdlock(&rwlock), pthread_rwlock_unlock(&rwlock))
PAIR(spin, pthread_spin_lock(&spin), pthread_spin_unlock(&spin))
PAIR(semaphore, sem_wait(&semaphore), sem_post(&semaphore))
PAIR(c11, mtx_lock(&c11), mtx_unlock(&c11))

/* @call waits for the lock of @other, gets it, and has raised the callbacks. */
#define WAITS(other_name, call, give, address, kind)                           \
	do {                                                                   \
		struct other other;                                            \
		struct told *first, *second;                                   \
                                                                               \
		begin_other(&other, take_##other_name, give_##other_name,      \
			    false);                                            \
		errno = ENOTTY;                                                \
		CHECK((call) == 0);                                            \
		CHECK(errno == ENOTTY);                                        \
		first = NEXT(CONTENTION, address, kind);                       \
		second = NEXT(ACQUIRED, address, kind);                        \
		CHECK(first->lock.ended == 0 && first->lock.began != 0);       \
		CHECK(second->lock.began == first->lock.began);                \
		CHECK(second->lock.ended > second->lock.began);                \
		CHECK(second->lock.error == 0 && first->tid == gettid());      \
		last_holder = first->holder;                                   \
		last_other = other.tid;                                        \
		CHECK((give) == 0);                                            \
		end_other(&other);                                             \
		NOTHING_MORE();                                                \
	} while (0)

#define HELD_BY_OTHER() CHECK(last_holder == last_other)

static uint32_t last_holder, last_other;

static void every_kind(void)
{
	struct timespec real = in(CLOCK_REALTIME, 60000);
	struct timespec steady = in(CLOCK_MONOTONIC, 60000);

	WAITS(mutex, pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex),
	      &mutex, MUTEX);
	HELD_BY_OTHER();
	WAITS(mutex, pthread_mutex_timedlock(&mutex, &real),
	      pthread_mutex_unlock(&mutex), &mutex, MUTEX);
	HELD_BY_OTHER();
	WAITS(mutex, pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &steady),
	      pthread_mutex_unlock(&mutex), &mutex, MUTEX);
	WAITS(write, pthread_rwlock_rdlock(&rwlock),
	      pthread_rwlock_unlock(&rwlock), &rwlock, READ);
	HELD_BY_OTHER();
	WAITS(write, pthread_rwlock_timedrdlock(&rwlock, &real),
	      pthread_rwlock_unlock(&rwlock), &rwlock, READ);
	WAITS(write,
	      pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &steady),
	      pthread_rwlock_unlock(&rwlock), &rwlock, READ);
	WAITS(write, pthread_rwlock_wrlock(&rwlock),
	      pthread_rwlock_unlock(&rwlock), &rwlock, WRITE);
	HELD_BY_OTHER();
	/* The reader that holds the lock is unknown. */
	WAITS(read, pthread_rwlock_wrlock(&rwlock),
	      pthread_rwlock_unlock(&rwlock), &rwlock, WRITE);
	CHECK(last_holder == 0);
	WAITS(read, pthread_rwlock_timedwrlock(&rwlock, &real),
	      pthread_rwlock_unlock(&rwlock), &rwlock, WRITE);
	WAITS(read,
	      pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &steady),
	      pthread_rwlock_unlock(&rwlock), &rwlock, WRITE);
	WAITS(spin, pthread_spin_lock(&spin), pthread_spin_unlock(&spin), &spin,
	      SPIN);
	WAITS(semaphore, sem_wait(&semaphore), sem_post(&semaphore), &semaphore,
	      SEMAPHORE);
	WAITS(semaphore, sem_timedwait(&semaphore, &real), sem_post(&semaphore),
	      &semaphore, SEMAPHORE);
	WAITS(semaphore, sem_clockwait(&semaphore, CLOCK_MONOTONIC, &steady),
	      sem_post(&semaphore), &semaphore, SEMAPHORE);
	WAITS(c11, mtx_lock(&c11), mtx_unlock(&c11), &c11, MUTEX);
	HELD_BY_OTHER();
	WAITS(c11, mtx_timedlock(&c11, &real), mtx_unlock(&c11), &c11, MUTEX);
}

/* --- conditions --- */

static volatile bool is_time;

static void nothing(void)
{
}

static void wake(void)
{
	pthread_mutex_lock(&mutex);
	is_time = true;
	pthread_cond_broadcast(&condition);
	pthread_mutex_unlock(&mutex);
}

static void wake_c11(void)
{
	mtx_lock(&c11);
	is_time = true;
	cnd_broadcast(&c11_condition);
	mtx_unlock(&c11);
}

/* The thread that wakes us may have to wait for the mutex, and spurious wakeups
 * count. */
#define WAITS_TO_BE_WOKEN(wake, take, wait, give, object, its_mutex)           \
	do {                                                                   \
		struct other other;                                            \
		unsigned waits = 0;                                            \
                                                                               \
		is_time = false;                                               \
		take;                                                          \
		begin_other(&other, nothing, wake, false);                     \
		while (!is_time) {                                             \
			CHECK((wait) == 0);                                    \
			waits++;                                               \
		}                                                              \
		give;                                                          \
		end_other(&other);                                             \
		CHECK(waits > 0);                                              \
		while (waits-- > 0) {                                          \
			CHECK(NEXT(CONTENTION, object, CONDITION)              \
				      ->lock.mutex == (uintptr_t)its_mutex);   \
			NEXT(ACQUIRED, object, CONDITION);                     \
		}                                                              \
		NOTHING_MORE();                                                \
	} while (0)

static void conditions(void)
{
	struct timespec real = in(CLOCK_REALTIME, 60000);
	struct timespec steady = in(CLOCK_MONOTONIC, 60000);
	struct timespec soon;

	WAITS_TO_BE_WOKEN(wake, pthread_mutex_lock(&mutex),
			  pthread_cond_wait(&condition, &mutex),
			  pthread_mutex_unlock(&mutex), &condition, &mutex);
	WAITS_TO_BE_WOKEN(wake, pthread_mutex_lock(&mutex),
			  pthread_cond_timedwait(&condition, &mutex, &real),
			  pthread_mutex_unlock(&mutex), &condition, &mutex);
	WAITS_TO_BE_WOKEN(wake, pthread_mutex_lock(&mutex),
			  pthread_cond_clockwait(&condition, &mutex,
						 CLOCK_MONOTONIC, &steady),
			  pthread_mutex_unlock(&mutex), &condition, &mutex);
	WAITS_TO_BE_WOKEN(wake_c11, mtx_lock(&c11),
			  cnd_wait(&c11_condition, &c11), mtx_unlock(&c11),
			  &c11_condition, &c11);
	WAITS_TO_BE_WOKEN(wake_c11, mtx_lock(&c11),
			  cnd_timedwait(&c11_condition, &c11, &real),
			  mtx_unlock(&c11), &c11_condition, &c11);
	soon = in(CLOCK_REALTIME, 2);
	pthread_mutex_lock(&mutex);
	CHECK(pthread_cond_timedwait(&condition, &mutex, &soon) == ETIMEDOUT);
	pthread_mutex_unlock(&mutex);
	NEXT(CONTENTION, &condition, CONDITION);
	CHECK(NEXT(FAILED, &condition, CONDITION)->lock.error == ETIMEDOUT);
	soon = in(CLOCK_REALTIME, 2);
	mtx_lock(&c11);
	CHECK(cnd_timedwait(&c11_condition, &c11, &soon) == thrd_timedout);
	mtx_unlock(&c11);
	NEXT(CONTENTION, &c11_condition, CONDITION);
	CHECK(NEXT(FAILED, &c11_condition, CONDITION)->lock.error == ETIMEDOUT);
	NOTHING_MORE();
}

/* --- failures --- */

#define REFUSED(call, result, address, kind, why)                              \
	do {                                                                   \
		struct told *at;                                               \
                                                                               \
		CHECK((call) == (result));                                     \
		at = NEXT(FAILED, address, kind);                              \
		CHECK(at->lock.began == 0 && at->lock.error == (why));         \
		NOTHING_MORE();                                                \
	} while (0)

#define GIVES_UP(call, result, address, kind, why)                             \
	do {                                                                   \
		struct told *at;                                               \
                                                                               \
		CHECK((call) == (result));                                     \
		NEXT(CONTENTION, address, kind);                               \
		at = NEXT(FAILED, address, kind);                              \
		CHECK(at->lock.ended > at->lock.began &&                       \
		      at->lock.error == (why));                                \
		NOTHING_MORE();                                                \
	} while (0)

#define WITH_OTHER(name, ...)                                                  \
	do {                                                                   \
		struct other other_;                                           \
                                                                               \
		begin_other(&other_, take_##name, give_##name, true);          \
		__VA_ARGS__;                                                   \
		end_other(&other_);                                            \
	} while (0)

static int with_errno(int result, int wanted)
{
	CHECK(result == -1 && errno == wanted);
	return result;
}

static void failing(void)
{
	struct timespec soon, bad = { 0, -1 };

	WITH_OTHER(mutex, {
		REFUSED(pthread_mutex_trylock(&mutex), EBUSY, &mutex, MUTEX,
			EBUSY);
		soon = in(CLOCK_REALTIME, 2);
		GIVES_UP(pthread_mutex_timedlock(&mutex, &soon), ETIMEDOUT,
			 &mutex, MUTEX, ETIMEDOUT);
		GIVES_UP(pthread_mutex_timedlock(&mutex, &bad), EINVAL, &mutex,
			 MUTEX, EINVAL);
		soon = in(CLOCK_MONOTONIC, 2);
		GIVES_UP(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC,
						 &soon),
			 ETIMEDOUT, &mutex, MUTEX, ETIMEDOUT);
		REFUSED(pthread_mutex_clocklock(&mutex,
						CLOCK_PROCESS_CPUTIME_ID, &soon),
			EINVAL, &mutex, MUTEX, EINVAL);
	});
	REFUSED(pthread_mutex_clocklock(&mutex, CLOCK_PROCESS_CPUTIME_ID,
					&soon),
		EINVAL, &mutex, MUTEX, EINVAL);
	/* The mutex is free, so libc does not check the time. */
	CHECK(pthread_mutex_timedlock(&mutex, &bad) == 0);
	pthread_mutex_unlock(&mutex);
	WITH_OTHER(write, {
		REFUSED(pthread_rwlock_tryrdlock(&rwlock), EBUSY, &rwlock, READ,
			EBUSY);
		REFUSED(pthread_rwlock_trywrlock(&rwlock), EBUSY, &rwlock,
			WRITE, EBUSY);
		soon = in(CLOCK_REALTIME, 2);
		GIVES_UP(pthread_rwlock_timedrdlock(&rwlock, &soon), ETIMEDOUT,
			 &rwlock, READ, ETIMEDOUT);
		soon = in(CLOCK_REALTIME, 2);
		GIVES_UP(pthread_rwlock_timedwrlock(&rwlock, &soon), ETIMEDOUT,
			 &rwlock, WRITE, ETIMEDOUT);
	});
	/* Here libc does check it. */
	REFUSED(pthread_rwlock_timedrdlock(&rwlock, &bad), EINVAL, &rwlock,
		READ, EINVAL);
	REFUSED(pthread_rwlock_timedwrlock(&rwlock, &bad), EINVAL, &rwlock,
		WRITE, EINVAL);
	CHECK(pthread_rwlock_wrlock(&rwlock) == 0);
	GIVES_UP(pthread_rwlock_wrlock(&rwlock), EDEADLK, &rwlock, WRITE,
		 EDEADLK);
	GIVES_UP(pthread_rwlock_rdlock(&rwlock), EDEADLK, &rwlock, READ,
		 EDEADLK);
	pthread_rwlock_unlock(&rwlock);
	WITH_OTHER(spin, REFUSED(pthread_spin_trylock(&spin), EBUSY, &spin,
				 SPIN, EBUSY));
	WITH_OTHER(semaphore, {
		REFUSED(with_errno(sem_trywait(&semaphore), EAGAIN), -1,
			&semaphore, SEMAPHORE, EAGAIN);
		soon = in(CLOCK_REALTIME, 2);
		GIVES_UP(with_errno(sem_timedwait(&semaphore, &soon),
				    ETIMEDOUT),
			 -1, &semaphore, SEMAPHORE, ETIMEDOUT);
		REFUSED(with_errno(sem_timedwait(&semaphore, &bad), EINVAL), -1,
			&semaphore, SEMAPHORE, EINVAL);
	});
	REFUSED(with_errno(sem_timedwait(&semaphore, &bad), EINVAL), -1,
		&semaphore, SEMAPHORE, EINVAL);
	WITH_OTHER(c11, {
		REFUSED(mtx_trylock(&c11), thrd_busy, &c11, MUTEX, EBUSY);
		soon = in(CLOCK_REALTIME, 2);
		GIVES_UP(mtx_timedlock(&c11, &soon), thrd_timedout, &c11, MUTEX,
			 ETIMEDOUT);
	});
}

/* --- mutexes of all types still work --- */

static pthread_mutex_t typed;

static void make_typed(int type, int protocol, int robust)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, type);
	pthread_mutexattr_setprotocol(&attributes, protocol);
	pthread_mutexattr_setrobust(&attributes, robust);
	pthread_mutex_init(&typed, &attributes);
	pthread_mutexattr_destroy(&attributes);
}

PAIR(typed, pthread_mutex_lock(&typed), pthread_mutex_unlock(&typed))

static void *die_with_it(void *unused)
{
	pthread_mutex_lock(&typed);
	return unused;
}

static void types(void)
{
	static const int all[] = { PTHREAD_MUTEX_NORMAL,
				   PTHREAD_MUTEX_RECURSIVE,
				   PTHREAD_MUTEX_ERRORCHECK,
				   PTHREAD_MUTEX_ADAPTIVE_NP };
	pthread_t thread;

	for (int i = 0; i < 4; i++)
		for (int protocol = 0; protocol < 2; protocol++) {
			make_typed(all[i], protocol ? PTHREAD_PRIO_INHERIT :
						      PTHREAD_PRIO_NONE,
				   PTHREAD_MUTEX_STALLED);
			take_typed();
			give_typed();
			NOTHING_MORE();
			WAITS(typed, pthread_mutex_lock(&typed),
			      pthread_mutex_unlock(&typed), &typed, MUTEX);
			HELD_BY_OTHER();
		}
	make_typed(PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE,
		   PTHREAD_MUTEX_STALLED);
	for (int i = 0; i < 3; i++)
		take_typed();
	for (int i = 0; i < 3; i++)
		give_typed();
	CHECK(pthread_mutex_unlock(&typed) == EPERM);
	NOTHING_MORE();
	make_typed(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE,
		   PTHREAD_MUTEX_STALLED);
	take_typed();
	GIVES_UP(pthread_mutex_lock(&typed), EDEADLK, &typed, MUTEX, EDEADLK);
	give_typed();
	make_typed(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE,
		   PTHREAD_MUTEX_ROBUST);
	pthread_create(&thread, NULL, die_with_it, NULL);
	pthread_join(thread, NULL);
	CHECK(pthread_mutex_lock(&typed) == EOWNERDEAD);
	give_typed();	/* not made consistent */
	NOTHING_MORE();
	REFUSED(pthread_mutex_lock(&typed), ENOTRECOVERABLE, &typed, MUTEX,
		ENOTRECOVERABLE);
}

/* --- in the middle of a wait --- */

static void on_signal(int number)
{
	(void)number;
}

static sigjmp_buf back;

static void jump(int number)
{
	(void)number;
	siglongjmp(back, 1);
}

static pthread_t waiting;

static void send(void)
{
	pthread_kill(waiting, SIGUSR1);
}

static void catch(void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	sigaction(SIGUSR1, &action, NULL);
	waiting = pthread_self();
}

static void signals(void)
{
	struct other other;

	take_semaphore();
	catch(on_signal);
	begin_other(&other, nothing, send, false);
	GIVES_UP(with_errno(sem_wait(&semaphore), EINTR), -1, &semaphore,
		 SEMAPHORE, EINTR);
	end_other(&other);
	catch(jump);
	if (!sigsetjmp(back, 1)) {
		begin_other(&other, nothing, send, false);
		sem_wait(&semaphore);
		CHECK(false);
	}
	end_other(&other);
	NEXT(CONTENTION, &semaphore, SEMAPHORE);
	NOTHING_MORE();
	sem_post(&semaphore);
	take_semaphore();
	sem_post(&semaphore);
	NOTHING_MORE();
}

static volatile int cleaned;

static void clean(void *unused)
{
	(void)unused;
	cleaned++;
}

static void *wait_to_be_cancelled(void *call)
{
	pthread_cleanup_push(clean, NULL);
	((void (*)(void))call)();
	pthread_cleanup_pop(0);
	return NULL;
}

static void wait_for_condition(void)
{
	pthread_mutex_lock(&mutex);
	pthread_cleanup_push((void (*)(void *))pthread_mutex_unlock, &mutex);
	pthread_cond_wait(&condition, &mutex);
	pthread_cleanup_pop(0);
}

static void cancel_in(void (*call)(void))
{
	unsigned before = told_count;
	pthread_t thread;
	void *result;

	cleaned = 0;
	pthread_create(&thread, NULL, wait_to_be_cancelled, (void *)call);
	while (told_count == before)
		nap();
	pthread_cancel(thread);
	pthread_join(thread, &result);
	CHECK(result == PTHREAD_CANCELED && cleaned == 1);
}

/* Waiting is a cancellation point even if the thread need not wait. */
static void *take_when_cancelled(void *unused)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	sem_wait(&semaphore);
	return unused;
}

static void cancelled(void)
{
	pthread_t thread;
	void *result;
	int value;

	take_semaphore();
	cancel_in(take_semaphore);
	NEXT(CONTENTION, &semaphore, SEMAPHORE);
	cancel_in(wait_for_condition);
	NEXT(CONTENTION, &condition, CONDITION);
	NOTHING_MORE();
	CHECK(pthread_mutex_trylock(&mutex) == 0);
	pthread_mutex_unlock(&mutex);
	sem_post(&semaphore);
	pthread_create(&thread, NULL, take_when_cancelled, NULL);
	pthread_join(thread, &result);
	CHECK(result == PTHREAD_CANCELED);
	sem_getvalue(&semaphore, &value);
	CHECK(value == 1);
	NOTHING_MORE();
}

/* --- other callers --- */

static void forks(void)
{
	int status;

	take_mutex();
	if (fork() == 0) {
		NOTHING_MORE();
		give_mutex();
		WAITS(mutex, pthread_mutex_lock(&mutex),
		      pthread_mutex_unlock(&mutex), &mutex, MUTEX);
		_exit(0);
	}
	wait(&status);
	CHECK(status == 0);
	give_mutex();
	NOTHING_MORE();
}

/* Handlers of the program run before shim's and after them. */
static void in_handlers(void)
{
	struct other other;
	int status;

	pthread_atfork(take_mutex, give_mutex, give_mutex);
	begin_other(&other, take_mutex, give_mutex, false);
	if (fork() == 0)
		_exit(pthread_mutex_trylock(&mutex));
	wait(&status);
	CHECK(status == 0);
	end_other(&other);
	NEXT(CONTENTION, &mutex, MUTEX);
	NEXT(ACQUIRED, &mutex, MUTEX);
	NOTHING_MORE();
}

static void inside(void)
{
	CHECK(strstr(called_object(), "libshim"));
	callback_locks = true;
	WAITS(mutex, pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex),
	      &mutex, MUTEX);
}

static void nobody(void)
{
	WITH_OTHER(mutex, CHECK(pthread_mutex_trylock(&mutex) == EBUSY));
	CHECK(told_count == 0);
}

static void unheard(void)
{
	nobody();
	CHECK(shim_profiler_enable_locks(shim_profiler_create(NULL)) !=
	      SHIM_OK);
	CHECK(strstr(called_object(), "libc.so"));
	take_mutex();
	give_mutex();
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "every_kind", every_kind }, { "conditions", conditions },
	{ "failing", failing },	      { "types", types },
	{ "signals", signals },	      { "cancelled", cancelled },
	{ "forks", forks },	      { "inside", inside },
	{ "unheard", unheard },	      { "in_handlers", in_handlers },
};

__attribute__((constructor)) static void first(int count, char **arguments)
{
	struct shim_profiler_handle *handle;

	if (!shim_profiler_create)
		return;
	handle = shim_profiler_create(NULL);
	CHECK(shim_profiler_enable_locks(NULL) == SHIM_E_INVALIDARG);
	if (count < 2 || strcmp(arguments[1], "unheard"))
		CHECK(shim_profiler_enable_locks(handle) == SHIM_OK);
	shim_profiler_on_lock_contention(handle, on_contention);
	shim_profiler_on_lock_failed(handle, on_failed);
	shim_profiler_on_lock_acquired(handle, on_acquired);
}

int main(int count, char **arguments)
{
	pthread_spin_init(&spin, 0);
	sem_init(&semaphore, 0, 1);
	mtx_init(&c11, mtx_timed);
	cnd_init(&c11_condition);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (count > 1 && !strcmp(cases[i].name, arguments[1])) {
			cases[i].run();
			puts("done");
			return 0;
		}
	return 2;
}
