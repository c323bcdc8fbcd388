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
static int lock_owner;	    /* tid, 0: free, -tid: that thread is forking */
static int lock_before;	    /* the owner's predecessor: 0, or minus a tid */
static int lock_waiters;    /* threads that sleep until it is free */
static int forking;	    /* the thread that forks; 0: none */
static unsigned fork_turns; /* how often a thread that forks got the lock */
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
/* A thread that forks may sleep this long at a time. */
#define FORK_NS 100000000u
/* It may run, and wait for a processor, this long. */
#define FORK_RUN_NS 10000000000u
#define YIELDS	    32
/* Thousands of threads may wait.  A few of them look more often at a thread that forks. */
#define SLEEP_MS      250
#define SLEEP_FORK_MS 50
#define LOOK_OFTEN    8

/* Yields at first, then sleeps: thousands of threads that yield to each other would make no
 * progress.  Returns whether the owner has kept the lock for as long as the thread may sleep. */
static bool yield_or_sleep(int owner, unsigned yields)
{
	bool looks_often;
	int r;

	if (yields < YIELDS) {
		sys_yield();
		return false;
	}
	looks_often = __atomic_add_fetch(&lock_waiters, 1, __ATOMIC_SEQ_CST) <=
			      LOOK_OFTEN &&
		      owner < 0;
	r = sys_wait((uint32_t *)&lock_owner, (uint32_t)owner,
		     looks_often ? SLEEP_FORK_MS : SLEEP_MS);
	__atomic_sub_fetch(&lock_waiters, 1, __ATOMIC_SEQ_CST);
	return r == -ETIMEDOUT;
}

/* What a waiting thread knows about the thread that forks. */
struct forker {
	unsigned turns;
	uint64_t runs;	    /* how often the thread had got a processor */
	uint64_t begin_ns;  /* since when it forks */
	uint64_t asleep_ns; /* since when it sleeps, as far as is known */
};

/* Whether the thread @tid forks, and does not wait for another lock as far as is known: a
 * lock that is contended may make it sleep many times, but not for long.  Not inlined,
 * because it has a buffer. */
static __attribute__((noinline)) bool forks_still(struct forker *forker,
						  int tid, uint64_t now_ns)
{
	unsigned turns = __atomic_load_n(&fork_turns, __ATOMIC_RELAXED);
	uint64_t runs = tasks_runs((uint32_t)tid);

	if (forker->turns != turns) {
		forker->turns = turns;
		forker->begin_ns = forker->asleep_ns = now_ns;
	}
	if (forker->runs != runs || !tasks_is_asleep((uint32_t)tid)) {
		forker->runs = runs;
		forker->asleep_ns = now_ns;
	}
	return now_ns - forker->asleep_ns < FORK_NS &&
	       now_ns - forker->begin_ns < FORK_RUN_NS;
}

/*
 * A thread that forks holds the lock so that its child finds all data consistent.  Inside
 * libc's fork it may wait for another lock, whose owner may wait here: a signal handler has
 * interrupted malloc, and begins a new path.  So a waiting thread borrows the lock from a
 * thread that has slept for FORK_NS, and gives it back.  (The fork of a large process or on a
 * busy machine may take longer.)  Not inlined, because hooks for new call paths call
 * state_call_locked with little stack.
 */
static __attribute__((noinline)) void wait_for_lock(int self, int before)
{
	struct forker forker = { .turns = 0 };
	bool is_long =
		false; /* a usual fork has ended by then, and is not looked at */
	unsigned yields = 0;
	uint64_t now_ns;

	do {
		sys_time_ns(MONOTONIC, &now_ns);
		if (before != -self &&
		    (before >= 0 || !is_long ||
		     forks_still(&forker, -before, now_ns))) {
			is_long = yield_or_sleep(before, yields++);
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

/* The store comes first: a thread that is about to sleep sees the new owner, or is woken.
 * The fork of @to may have ended while its lock was borrowed. */
static void unlock(int to)
{
	if (to < 0)
		__atomic_store_n(&fork_turns, fork_turns + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&lock_owner, to, __ATOMIC_SEQ_CST);
	if (to < 0 && __atomic_load_n(&forking, __ATOMIC_SEQ_CST) != -to)
		__atomic_compare_exchange_n(&lock_owner, &to, 0, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
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
		/* Back to a thread that forks: it may be the own one, interrupted by
		 * a signal handler. */
		unlock(lock_before);
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

	if (!sys_is_closing() &&
	    !__atomic_exchange_n(&is_logged, true, __ATOMIC_RELAXED))
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

	if (self > 0 && __atomic_load_n(&forking, __ATOMIC_RELAXED) != self) {
		uint64_t signals;

		/* No handler may run between lock and unlock: it would find its own
		 * thread as the owner. */
		if (sys_block_signals(&signals) < 0)
			return;
		lock(self);
		__atomic_store_n(&forking, self, __ATOMIC_SEQ_CST);
		unlock(-self);
		sys_restore_signals(signals);
	}
}

void state_fork_ended(void)
{
	int self = sys_is_forbidden() ? 0 : sys_gettid(), held = -self;

	if (self <= 0 || __atomic_load_n(&forking, __ATOMIC_RELAXED) != self)
		return;
	__atomic_store_n(&forking, 0, __ATOMIC_SEQ_CST);
	if (__atomic_compare_exchange_n(&lock_owner, &held, 0, false,
					__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		wake_a_waiter();
}

bool state_forked(void)
{
	lock_waiters = forking = 0;
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
