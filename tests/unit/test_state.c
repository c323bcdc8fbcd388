/*
 * The lock of the runtime while a thread forks: other threads wait as long as the thread
 * runs, and take the lock from one that sleeps, because it may wait for them.
 */
#define _GNU_SOURCE
#include "runtime/state.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static volatile int taken;

static int take(void *unused)
{
	(void)unused;
	taken = 1;
	return 0;
}

static void *in_thread(void *unused)
{
	state_call_locked(take, NULL);
	return unused;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Seen to fail when a thread waited for 250 ms. */
Test(state, a_thread_that_forks_keeps_the_lock_while_it_runs)
{
	double end = now() + 1;
	pthread_t thread;

	state_fork_begins();
	pthread_create(&thread, NULL, in_thread, NULL);
	while (now() < end)
		cr_assert(not(taken));
	state_fork_ended();
	pthread_join(thread, NULL);
	cr_assert(taken);
}

Test(state, the_lock_of_a_thread_that_sleeps_in_fork_is_taken)
{
	pthread_t thread;

	state_fork_begins();
	pthread_create(&thread, NULL, in_thread, NULL);
	/* If it is not taken, this never ends. */
	pthread_join(thread, NULL);
	cr_assert(taken);
	state_fork_ended();
}
