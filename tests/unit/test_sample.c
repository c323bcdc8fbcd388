/*
 * The sampler when system calls fail: the n-th system call of enabling it and
 * of setting a mode fails, for all n, once and from then on.  And the weights of samples
 * whose callbacks take long.
 */
#define _GNU_SOURCE
#include "fake_sys.h"
#include "os/sys.h"
#include "runtime/state.h"
#include "runtime/thread.h"
#include "sampling/sample.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <shim/sampling.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALLS_MAX 200

static unsigned long hits;

static void hit(struct shim_profiler *profiler, uintptr_t ip,
		const void *context, uint32_t weight)
{
	(void)profiler;
	(void)ip;
	(void)context;
	hits += weight;
}

static void spin(double seconds)
{
	struct timespec time;
	double end = -1, now;

	do {
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
		now = (double)time.tv_sec + (double)time.tv_nsec / 1e9;
		if (end < 0)
			end = now + seconds;
	} while (now < end);
}

/* The findings of a run, returned as its exit status. */
enum found {
	FOUND_HITS = 1,
	FOUND_ENABLED = 2,
	FOUND_SET = 4,
	FOUND_FAILED = 8, /* a system call failed */
	FOUND_WRONG = 16,
	/* the failed call unblocks signals, which only seccomp can refuse */
	FOUND_BLOCKED = 32,
	FOUND_TOLD = 64, /* a message reported that a thread has no timer */
};

static int run(unsigned n, bool for_good, uint32_t wanted)
{
	struct shim_profiler_handle *handle;
	struct shim_sample_counts counts;
	uint32_t mode = 77, frequency_hz = 0;
	int found = 0;

	setenv("SHIM_DISABLE", "1", 1);
	state_start();
	handle = shim_profiler_create(NULL);
	shim_profiler_on_sample_hit(handle, hit);
	thread_get();
	if (n > 0)
		fake_fail(n, EAGAIN, for_good);
	if (shim_profiler_enable_sampling(handle) == SHIM_OK)
		found |= FOUND_ENABLED;
	if (shim_profiler_set_sample_mode(handle, wanted, 500) == SHIM_OK)
		found |= FOUND_SET;
	if (fake_failed())
		found |= FOUND_FAILED;
	if (fake_failed() && strcmp(fake_failed(), "restore_signals") == 0)
		found |= FOUND_BLOCKED;
	fake_fail(0, 0, false);
	if (shim_get_sample_counts(&counts) == SHIM_OK &&
	    counts.timers_failed == 1)
		found |= FOUND_TOLD;
	spin(0.02);
	if (hits > 0)
		found |= FOUND_HITS;
	shim_profiler_get_sample_mode(handle, &mode, &frequency_hz);
	if (mode != (found & FOUND_SET ? wanted : SHIM_SAMPLE_NONE))
		found |= FOUND_WRONG;
	return found;
}

static int run_apart(unsigned n, bool for_good, uint32_t mode)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0)
		_exit(run(n, for_good, mode));
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

Test(sample, any_system_call_may_fail, .timeout = 120)
{
	static const uint32_t modes[] = { SHIM_SAMPLE_PROCESS,
					  SHIM_SAMPLE_REAL };

	for (unsigned m = 0; m < 2; m++) {
		unsigned n = 1, refused = 0;
		int found = FOUND_FAILED;

		cr_assert(eq(int, run_apart(0, false, modes[m]),
			     FOUND_HITS | FOUND_ENABLED | FOUND_SET));
		/* The sampler checks all handlers of the program one by one: a
		 * part of these calls is enough. */
		for (; n < CALLS_MAX && (found & FOUND_FAILED);
		     n += n < 12 || n > 75 ? 1 : 8)
			for (int for_good = 0; for_good < 2; for_good++) {
				found = run_apart(n, for_good, modes[m]);
				refused += !(found & FOUND_SET);
				cr_expect(eq(int, found &FOUND_WRONG, 0),
					  "call %u: %d", n, found);
				cr_expect(lt(int, found, 1000), "call %u: %d",
					  n, found);
				/* A mode that was set must run, or a message
				 * must name the thread without a timer. */
				if ((found & (FOUND_SET | FOUND_BLOCKED |
					      FOUND_TOLD)) == FOUND_SET &&
				    !for_good)
					cr_expect(eq(int, found &FOUND_HITS,
						     FOUND_HITS),
						  "call %u", n);
			}
		cr_expect(lt(u32, n, CALLS_MAX));
		cr_expect(gt(u32, refused, 2));
	}
}

/* --- weights --- */

#define MS 1000000ull

static uint64_t thread_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000 * MS + (uint64_t)time.tv_nsec;
}

static uint64_t busy_ns;
static uint32_t heaviest;

/* Computes for a third of a period. */
static void hit_computes(struct shim_profiler *profiler, uintptr_t ip,
			 const void *context, uint32_t weight)
{
	uint64_t begin = thread_ns();

	hit(profiler, ip, context, weight);
	while (thread_ns() < begin + 666 * 1000)
		continue;
	busy_ns += thread_ns() - begin;
}

/* Waits once for 50 periods. */
static void hit_waits(struct shim_profiler *profiler, uintptr_t ip,
		      const void *context, uint32_t weight)
{
	static const struct timespec pause = { .tv_nsec = 100 * MS };

	if (hits == 0)
		nanosleep(&pause, NULL);
	hit(profiler, ip, context, weight);
	if (weight > heaviest)
		heaviest = weight;
}

typedef void (*hit_callback)(struct shim_profiler *profiler, uintptr_t ip,
			     const void *context, uint32_t weight);

static bool sample_with(hit_callback callback)
{
	struct shim_profiler_handle *handle;

	setenv("SHIM_DISABLE", "1", 1);
	state_start();
	handle = shim_profiler_create(NULL);
	shim_profiler_on_sample_hit(handle, callback);
	thread_get();
	return shim_profiler_enable_sampling(handle) == SHIM_OK &&
	       shim_profiler_set_sample_mode(handle, SHIM_SAMPLE_PROCESS,
					     500) == SHIM_OK;
}

/* The percentage of the program's time that the samples found; 255: more. */
static int find_share(void)
{
	uint64_t begin, rest, share;

	if (!sample_with(hit_computes))
		return 0;
	begin = thread_ns();
	spin(1);
	rest = thread_ns() - begin - busy_ns;
	share = busy_ns > 100 * MS ? hits * 200 * MS / rest : 0;
	return share < 255 ? (int)share : 255;
}

static int find_heaviest(void)
{
	if (!sample_with(hit_waits))
		return 0;
	spin(0.3);
	return heaviest < 255 ? (int)heaviest : 255;
}

/* The sampler's signals would disturb the test's own process. */
static int apart(int (*find)(void))
{
	pid_t child = fork();
	int status = -1;

	if (child == 0)
		_exit(find());
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(sample, weights_exclude_the_time_of_callbacks)
{
	int share = apart(find_share);

	cr_expect(gt(int, share, 90));
	cr_expect(lt(int, share, 110));
}

Test(sample, callback_that_waits_costs_no_samples)
{
	int found = apart(find_heaviest);

	cr_expect(gt(int, found, 0));
	cr_expect(lt(int, found, 25));
}

/* --- counts --- */

static struct shim_profiler_handle *start_sampling(void)
{
	struct shim_profiler_handle *handle;

	setenv("SHIM_DISABLE", "1", 1);
	state_start();
	handle = shim_profiler_create(NULL);
	shim_profiler_on_sample_hit(handle, hit);
	thread_get();
	cr_assert(eq(int, shim_profiler_enable_sampling(handle), SHIM_OK));
	return handle;
}

/* Criterion's own calls would be interrupted, so this is a process of its own. */
static int find_counts(void)
{
	struct shim_profiler_handle *handle = start_sampling();
	struct shim_sample_counts counts;

	shim_profiler_set_sample_mode(handle, SHIM_SAMPLE_PROCESS, 500);
	while (*(volatile unsigned long *)&hits < 3)
		spin(0.001);
	shim_profiler_set_sample_mode(handle, SHIM_SAMPLE_NONE, 0);
	if (shim_get_sample_counts(&counts) != SHIM_OK)
		return 100;
	return (counts.sent != counts.received) |
	       (counts.accepted != hits) << 1 |
	       (counts.received < counts.accepted + counts.lost) << 2 |
	       (counts.signals == 0) << 3 | (counts.timers_failed > 0) << 4;
}

Test(sample, all_expirations_are_counted)
{
	cr_expect(eq(int, apart(find_counts), 0));
}

/* --- the signals that the handler blocks --- */

#define SETXID 33

static uint64_t bit_of(int signal)
{
	return 1ull << (signal - 1);
}

static uint64_t blocked_signals(void)
{
	struct sys_action now;

	cr_assert(eq(int, sys_signal_action(SETXID, NULL, &now), 0));
	return now.mask;
}

static void on_signal(int signal)
{
	(void)signal;
}

static bool is_blocked(int signal)
{
	return blocked_signals() & bit_of(signal);
}

/* The program sets a handler.  Returns whether the signal was blocked meanwhile. */
static bool set_handler(int signal, void (*handler)(int), bool is_set)
{
	struct sample_action action = { .signal = signal,
					.handler = (void *)handler };
	bool meanwhile;

	sample_action_begin(&action);
	meanwhile = is_blocked(SIGUSR1);
	if (signal > 0 && signal <= 64)
		meanwhile = is_blocked(signal);
	sample_action_end(&action, is_set);
	return meanwhile;
}

static const int blocked_cases[] = { SIGUSR1, SIGHUP, 64 };
static const int ignored_cases[] = { SIGCHLD, SIGCONT, SIGURG, SIGWINCH };

Test(sample, the_handler_blocks_signals_but_those_that_are_ignored)
{
	start_sampling();
	for (unsigned i = 0; i < 3; i++) {
		int signal = blocked_cases[i];

		cr_expect(set_handler(signal, on_signal, true), "%d", signal);
		cr_expect(is_blocked(signal), "%d", signal);
		/* If it is refused, the program has its handler still. */
		cr_expect(set_handler(signal, SIG_IGN, false), "%d", signal);
		cr_expect(is_blocked(signal), "%d", signal);
		cr_expect(set_handler(signal, SIG_IGN, true), "%d", signal);
		cr_expect(not(is_blocked(signal)), "%d", signal);
		cr_expect(not(set_handler(signal, SIG_ERR, true)), "%d",
			  signal);
		cr_expect(not(is_blocked(signal)), "%d", signal);
		cr_expect(set_handler(signal, SIG_DFL, true), "%d", signal);
		cr_expect(is_blocked(signal), "%d", signal);
		cr_expect(set_handler(signal, SIG_ERR, true), "%d", signal);
		cr_expect(is_blocked(signal), "%d", signal);
	}
	for (unsigned i = 0; i < 4; i++) {
		int signal = ignored_cases[i];

		cr_expect(not(is_blocked(signal)), "%d", signal);
		cr_expect(set_handler(signal, on_signal, true), "%d", signal);
		cr_expect(is_blocked(signal), "%d", signal);
		cr_expect(set_handler(signal, SIG_DFL, true), "%d", signal);
		cr_expect(not(is_blocked(signal)), "%d", signal);
	}
}

/* Stores into the recording's files may raise it. */
Test(sample, the_handler_never_blocks_sigbus)
{
	static void (*const handlers[])(int) = { SIG_DFL, on_signal, SIG_IGN,
						 SIG_ERR };

	start_sampling();
	cr_expect(not(is_blocked(SIGBUS)));
	for (unsigned i = 0; i < 4; i++) {
		cr_expect(not(set_handler(SIGBUS, handlers[i], true)), "%u", i);
		cr_expect(not(is_blocked(SIGBUS)), "%u", i);
	}
}

Test(sample, numbers_that_are_no_signals_change_nothing)
{
	uint64_t before;

	start_sampling();
	before = blocked_signals();
	for (unsigned i = 0; i < 3; i++) {
		static const int numbers[] = { 0, -1, 65 };

		set_handler(numbers[i], SIG_IGN, true);
		cr_expect(eq(u64, blocked_signals(), before), "%d", numbers[i]);
		set_handler(numbers[i], on_signal, true);
		cr_expect(eq(u64, blocked_signals(), before), "%d", numbers[i]);
	}
}
