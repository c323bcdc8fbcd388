/*
 * The lock of the runtime while a thread forks: other threads wait as long as the thread
 * runs, and borrow the lock from one that sleeps all the time, because it may wait for them.
 */
#define _GNU_SOURCE
#include "runtime/state.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
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

/* As for libc's own locks, which other threads hold now and then.  Seen to fail when a
 * thread took the lock because the other one slept at that moment. */
Test(state, a_thread_that_sleeps_for_short_times_in_fork_keeps_the_lock)
{
	struct timespec short_time = { 0, 5000000 };
	double end = now() + 1;
	pthread_t thread;

	state_fork_begins();
	pthread_create(&thread, NULL, in_thread, NULL);
	while (now() < end) {
		nanosleep(&short_time, NULL);
		cr_assert(not(taken));
	}
	state_fork_ended();
	pthread_join(thread, NULL);
	cr_assert(taken);
}

static void borrow(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, in_thread, NULL);
	/* If the lock is not borrowed, this never ends. */
	pthread_join(thread, NULL);
	cr_assert(taken);
	taken = 0;
}

/* Seen to fail when the lock was free after it. */
Test(state, the_lock_of_a_thread_that_sleeps_in_fork_is_borrowed)
{
	double end;
	pthread_t thread;

	state_fork_begins();
	borrow();
	borrow();
	end = now() + 0.5;
	pthread_create(&thread, NULL, in_thread, NULL);
	while (now() < end)
		cr_assert(not(taken));
	state_fork_ended();
	pthread_join(thread, NULL);
	cr_assert(taken);
}

static int take_long(void *unused)
{
	taken = 1;
	while (taken != 2)
		usleep(1000);
	return unused != NULL;
}

static void *in_thread_for_long(void *unused)
{
	state_call_locked(take_long, NULL);
	return unused;
}

/* Seen to fail when the lock was given back to a fork that had ended. */
Test(state, a_lock_that_is_borrowed_when_the_fork_ends_is_free_then)
{
	pthread_t thread;
	double begin;

	state_fork_begins();
	pthread_create(&thread, NULL, in_thread_for_long, NULL);
	while (!taken)
		usleep(1000);
	state_fork_ended();
	taken = 2;
	pthread_join(thread, NULL);
	begin = now();
	borrow();
	cr_assert(lt(dbl, now() - begin, 0.05));
	state_fork_begins();
	state_fork_ended();
}

/* Whether a child that is forked now finds the data whole. */
static bool is_child_whole(void)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0)
		_exit(state_forked());
	cr_assert(eq(int, waitpid(child, &status, 0), child));
	return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

/* The child of a fork whose lock another thread has borrowed finds its data whole, unless
 * that thread works at that moment. */
Test(state, a_child_is_whole_after_the_lock_was_borrowed)
{
	pthread_t thread;

	state_fork_begins();
	borrow();
	cr_assert(is_child_whole());
	pthread_create(&thread, NULL, in_thread_for_long, NULL);
	while (!taken)
		usleep(1000);
	cr_assert(not(is_child_whole()));
	taken = 2;
	pthread_join(thread, NULL);
	cr_assert(is_child_whole());
	state_fork_ended();
}

/* In process 1 of a namespace: 0 if the lock was kept, 1 if it was not. */
static int keep_as_process_1(void)
{
	double end = now() + 0.1;
	pthread_t thread;

	state_fork_begins();
	if (getpid() != 1 || pthread_create(&thread, NULL, in_thread, NULL))
		return 2;
	while (now() < end && !taken)
		;
	return taken;
}

#define NO_NAMESPACE 3

/* Only a process with one thread may make a namespace. */
static int fork_into_namespace(void)
{
	int status;
	pid_t child;

	if (unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
		return NO_NAMESPACE;
	child = fork();
	if (child == 0)
		_exit(keep_as_process_1());
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

/* As in a container, whose first process is the program. */
Test(state, process_1_of_a_namespace_keeps_the_lock_in_fork)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(fork_into_namespace());
	cr_assert(eq(int, waitpid(child, &status, 0), child));
	if (WEXITSTATUS(status) == NO_NAMESPACE)
		cr_skip_test("no namespaces of processes");
	cr_assert(eq(int, status, 0));
}
