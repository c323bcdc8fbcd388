/*
 * The lock of the runtime.  Work under the lock runs on a stack of shim.
 */
#include "runtime/state.h"

#include "arch.h"
#include "os/sys.h"
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
/* A thread that forks may have to wait as long for a processor. */
#define FORK_NS	 250000000u
#define YIELDS	 32
#define SLEEP_MS 250

/* Thousands of threads that yield to each other get nowhere. */
static void wait_a_little(int owner, unsigned yields)
{
	if (yields < YIELDS) {
		sys_yield();
		return;
	}
	__atomic_add_fetch(&lock_waiters, 1, __ATOMIC_SEQ_CST);
	sys_wait((uint32_t *)&lock_owner, (uint32_t)owner, SLEEP_MS);
	__atomic_sub_fetch(&lock_waiters, 1, __ATOMIC_SEQ_CST);
}

/*
 * A thread that forks holds the lock only so that its child finds all data
 * consistent.  In libc it may wait for a lock that a waiting thread has, so the
 * others take the lock from it after FORK_NS.  Not inlined: new call paths come here
 * with little stack.
 */
static __attribute__((noinline)) void wait_for_lock(int self, int before)
{
	uint64_t begin_ns, now_ns;
	unsigned yields = 0;

	sys_time_ns(MONOTONIC, &begin_ns);
	do {
		sys_time_ns(MONOTONIC, &now_ns);
		if (before != -self &&
		    (before >= 0 || now_ns - begin_ns < FORK_NS)) {
			wait_a_little(before, yields++);
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

/* In this order, a thread that falls asleep sees the new owner, or is woken. */
static void unlock(int to)
{
	__atomic_store_n(&lock_owner, to, __ATOMIC_SEQ_CST);
	wake_a_waiter();
}

static inline __attribute__((always_inline)) int
do_quietly(int (*work)(void *argument), void *argument)
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
		/* In a signal handler of a forking thread, that thread keeps it. */
		unlock(lock_before == -self ? -self : 0);
	}
	return r;
}

int state_quietly(int (*work)(void *argument), void *argument)
{
	return do_quietly(work, argument);
}

static __attribute__((noinline, cold)) int complain(int error)
{
	static bool is_told;

	if (!__atomic_exchange_n(&is_told, true, __ATOMIC_RELAXED))
		log_error(
			"signals cannot be blocked, so work that takes a lock is "
			"left out%s",
			"", error);
	return error;
}

/* Uses few frames: new call paths come here with little stack. */
int state_slowly(int (*work)(void *argument), void *argument)
{
	uint64_t signals;
	int r;

	if (sys_is_forbidden())
		return -EPERM;
	r = sys_block_signals(&signals);
	if (r < 0)
		return complain(r);
	r = do_quietly(work, argument);
	sys_restore_signals(signals);
	return r;
}

void state_fork_begins(void)
{
	int self = sys_is_forbidden() ? 0 : sys_gettid();

	if (self > 0 &&
	    __atomic_load_n(&lock_owner, __ATOMIC_RELAXED) != -self) {
		uint64_t signals;

		/* No handler may run between lock and unlock: it would take the
		 * lock for its own. */
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
	int r = state_slowly(start_rooms, NULL);

	if (state_get() == STATE_LOADED) {
		/* Signals could not be blocked, so shim cannot work.  The
		 * subscribers still have to set up the hook table. */
		log_error("nothing is recorded: %s fails", "a system call", r);
		log_give_up();
		NOTIFY(start_failed);
		__atomic_store_n(&state, STATE_OFF, __ATOMIC_RELEASE);
	}
}
