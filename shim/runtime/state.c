/*
 * The lock of the runtime, and the start.  Work under the lock runs on a stack of shim:
 * the program's stack may be too small, and one stack is enough because one thread works
 * at a time.
 */
#include "runtime/state.h"

#include "arch.h"
#include "os/sys.h"
#include "os/tasks.h"
#include "runtime/log.h"

#include <errno.h>
#include <stdint.h>

#include <shim/banned.h>

static enum state state;
static bool main_started;
static int lock_owner;	 /* tid, 0: free, -tid: that thread is forking */
static int lock_before;	 /* the owner's predecessor: 0, or minus a tid */
static int lock_waiters; /* threads that sleep until it is free */
static char stack[65536] __attribute__((aligned(64)));

enum state state_get(void)
{
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE);
}

bool state_main_started(void)
{
	return __atomic_load_n(&main_started, __ATOMIC_ACQUIRE);
}

void state_begin_main(void)
{
	__atomic_store_n(&main_started, true, __ATOMIC_RELEASE);
}

#define MONOTONIC 1
/* A thread that forks may sleep this long. */
#define FORK_NS 250000000u
/* It may run, and wait for a processor, this long. */
#define FORK_RUN_NS 10000000000u
#define YIELDS	    32
#define SLEEP_MS    250

/* Yields at first, then sleeps: thousands of threads that yield to each other would make no
 * progress. */
static void yield_or_sleep(int owner, unsigned yields)
{
	if (yields < YIELDS) {
		sys_yield();
		return;
	}
	__atomic_add_fetch(&lock_waiters, 1, __ATOMIC_SEQ_CST);
	sys_wait((uint32_t *)&lock_owner, (uint32_t)owner, SLEEP_MS);
	__atomic_sub_fetch(&lock_waiters, 1, __ATOMIC_SEQ_CST);
}

/* Whether thread @tid forks, and does not wait for another lock as far as is known.  Not
 * inlined, because it has a buffer. */
static __attribute__((noinline)) bool forks_still(int tid, uint64_t passed_ns)
{
	return passed_ns < FORK_NS ||
	       (passed_ns < FORK_RUN_NS && !tasks_is_asleep((uint32_t)tid));
}

/*
 * A thread that forks holds the lock so that its child finds all data consistent.  Inside
 * libc's fork it may wait for another lock, whose owner may wait here.  So a waiting thread
 * takes the lock of a thread that sleeps after FORK_NS.  (The child of a large process or on
 * a busy machine may take longer.)  Not inlined, because hooks for new call paths call
 * state_call_locked with little stack.
 */
static __attribute__((noinline)) void wait_for_lock(int self, int before)
{
	uint64_t begin_ns, now_ns;
	unsigned yields = 0;

	sys_time_ns(MONOTONIC, &begin_ns);
	do {
		sys_time_ns(MONOTONIC, &now_ns);
		if (before != -self &&
		    (before >= 0 || forks_still(-before, now_ns - begin_ns))) {
			yield_or_sleep(before, yields++);
			before = 0;
		}
	} while (!__atomic_compare_exchange_n(&lock_owner, &before, self, false,
					      __ATOMIC_ACQUIRE,
					      __ATOMIC_RELAXED));
	lock_before = before;
}

static void lock(int self)
{
	int before = 0;

	if (__atomic_compare_exchange_n(&lock_owner, &before, self, false,
					__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		lock_before = 0;
	else
		wait_for_lock(self, before);
}

static void wake_a_waiter(void)
{
	if (__atomic_load_n(&lock_waiters, __ATOMIC_SEQ_CST) > 0)
		sys_wake_one((uint32_t *)&lock_owner);
}

/* The store comes first: a thread that is about to sleep sees the new owner, or is
 * woken. */
static void unlock(int to)
{
	__atomic_store_n(&lock_owner, to, __ATOMIC_SEQ_CST);
	wake_a_waiter();
}

static inline __attribute__((always_inline)) int
run_locked(int (*work)(void *argument), void *argument)
{
	int self = sys_gettid(), r;

	if (self <= 0)
		return -EPERM;
	if (__atomic_load_n(&lock_owner, __ATOMIC_RELAXED) == self) {
		r = work(argument);
	} else {
		lock(self);
		r = arch_call_on_stack(work, argument, stack + sizeof(stack));
		SHIM_ASSERT(state_is_held());
		/* If a signal handler has interrupted a fork, its thread keeps the
		 * lock. */
		unlock(lock_before == -self ? -self : 0);
	}
	return r;
}

int state_call_locked_in_handler(int (*work)(void *argument), void *argument)
{
	return run_locked(work, argument);
}

static __attribute__((noinline, cold)) int log_unblockable_signals(int error)
{
	static bool is_logged;

	if (!__atomic_exchange_n(&is_logged, true, __ATOMIC_RELAXED))
		log_error(
			"signals cannot be blocked, so shim skips work that takes "
			"a lock%s",
			"", error);
	return error;
}

/* Uses few frames, because hooks for new call paths call this function with little
 * stack. */
int state_call_locked(int (*work)(void *argument), void *argument)
{
	uint64_t signals;
	int r;

	if (sys_is_forbidden())
		return -EPERM;
	r = sys_block_signals(&signals);
	if (r < 0)
		return log_unblockable_signals(r);
	r = run_locked(work, argument);
	sys_restore_signals(signals);
	return r;
}

void state_fork_begins(void)
{
	int self = sys_is_forbidden() ? 0 : sys_gettid();

	if (self > 0 &&
	    __atomic_load_n(&lock_owner, __ATOMIC_RELAXED) != -self) {
		uint64_t signals;

		/* No handler may run between lock and unlock: it would find its own
		 * thread as the owner. */
		if (sys_block_signals(&signals) < 0)
			return;
		lock(self);
		unlock(-self);
		sys_restore_signals(signals);
	}
}

void state_fork_ended(void)
{
	int self = sys_is_forbidden() ? 0 : sys_gettid(), held = -self;

	if (self > 0 &&
	    __atomic_compare_exchange_n(&lock_owner, &held, 0, false,
					__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		wake_a_waiter();
}

bool state_forked(void)
{
	lock_waiters = 0;
	return __atomic_exchange_n(&lock_owner, 0, __ATOMIC_ACQ_REL) <= 0;
}

#ifdef SHIM_ASSERTIONS
bool state_is_protected(void)
{
	return state_get() == STATE_LOADED || sys_is_forbidden() ||
	       state_is_held();
}
#endif

bool state_is_held(void)
{
	return __atomic_load_n(&lock_owner, __ATOMIC_RELAXED) == sys_gettid();
}

static int start_rooms(void *unused)
{
	bool runs = false;

	(void)unused;
	if (state_get() != STATE_LOADED)
		return 0;
	NOTIFY(starting, &runs);
	__atomic_store_n(&state, runs ? STATE_RUNNING : STATE_OFF,
			 __ATOMIC_RELEASE);
	return 0;
}

void state_start(void)
{
	int r = state_call_locked(start_rooms, NULL);

	if (state_get() == STATE_LOADED) {
		/* shim cannot work, because it could not block signals.  The
		 * subscribers of start_failed still set up the hook table. */
		log_error("nothing is recorded: %s fails", "a system call", r);
		log_give_up();
		NOTIFY(start_failed);
		__atomic_store_n(&state, STATE_OFF, __ATOMIC_RELEASE);
	}
}
