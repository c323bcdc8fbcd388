/*
 * A helper process may fail in any way, and the program does not notice.
 */
#define _GNU_SOURCE
#include "inspect/isolated_call.h"
#include "os/sys.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char stack[65536];
static int seen;

static int run(int (*call)(void *), void *argument, int *result)
{
	uint64_t before;
	int r;

	sys_block_signals(&before);
	r = isolated_call(call, argument, stack, sizeof(stack), result);
	sys_restore_signals(before);
	return r;
}

static int add(void *argument)
{
	seen += *(int *)argument;
	return -seen;
}

Test(apart, it_works_on_our_memory_and_its_result_is_given_back)
{
	int five = 5, result = 0;

	for (int i = 1; i <= 3; i++) {
		cr_assert(eq(int, run(add, &five, &result), 0));
		cr_assert(eq(int, seen, 5 * i));
		cr_assert(eq(int, result, -5 * i));
	}
}

static int read_nothing(void *unused)
{
	volatile int *volatile nothing = NULL;

	(void)unused;
	return *nothing;
}

static int divide(void *unused)
{
	volatile int zero = 0;

	(void)unused;
	return 12345 / zero;
}

static int call_abort(void *unused)
{
	(void)unused;
	abort();
}

static int stop(void *unused)
{
	(void)unused;
	__builtin_trap();
}

static int (*const faults[])(void *) = { read_nothing, divide, call_abort,
					 stop };

static void never(int number)
{
	(void)number;
	_exit(99);
}

Test(apart, what_crashes_there_does_not_crash_here)
{
	struct sigaction now;
	int result = 0;

	signal(SIGSEGV, never);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
#ifndef __x86_64__
		if (faults[i] == divide)
			continue;
#endif
		cr_expect(eq(int, run(faults[i], NULL, &result), -EFAULT),
			  "fault %zu", i);
	}
	sigaction(SIGSEGV, NULL, &now);
	cr_assert(eq(ptr, (void *)now.sa_handler, (void *)never));
}

static volatile int depth;

static int recurse(void *argument)
{
	volatile char room[4096];
	int r;

	room[0] = 1;
	if (depth++ < 0)
		return 0;
	r = recurse(argument);
	return r + room[0];
}

/* Runs on a thread, whose stack is limited. */
static void *overflow(void *argument)
{
	int result;

	*(int *)argument = run(recurse, NULL, &result);
	return NULL;
}

Test(apart, running_over_the_stack_is_a_crash)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int r = 0;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 1 << 20);
	pthread_create(&thread, &attributes, overflow, &r);
	pthread_join(thread, NULL);
	cr_assert(eq(int, r, -EFAULT));
}

static int spin(void *unused)
{
	(void)unused;
	while (depth == 0)
		;
	return 0;
}

Test(apart, what_never_ends_is_ended, .timeout = 300)
{
	int result;

	cr_assert(eq(int, run(spin, NULL, &result), -ETIME));
}

static volatile sig_atomic_t told;

static void tell(int number)
{
	(void)number;
	told = 1;
}

Test(apart, nothing_is_left_for_who_waits_for_children)
{
	int five = 5, result, status;

	signal(SIGCHLD, tell);
	cr_assert(eq(int, run(add, &five, &result), 0));
	cr_assert(eq(int, run(read_nothing, NULL, &result), -EFAULT));
	cr_assert(eq(int, told, 0));
	cr_assert(eq(int, waitpid(-1, &status, __WALL), -1));
	cr_assert(eq(int, errno, ECHILD));
}

Test(apart, where_system_calls_are_forbidden_nothing_runs)
{
	int five = 5, result;

	sys_forbid();
	cr_assert(eq(int,
		     isolated_call(add, &five, stack, sizeof(stack), &result),
		     -EPERM));
	cr_assert(eq(int, seen, 0));
}
