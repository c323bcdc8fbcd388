/*
 * Calls a function in a child that shares the memory of the process (CLONE_VM).  If the
 * function faults, only the child dies.
 */
#define _GNU_SOURCE
#include "inspect/isolated_call.h"

#include "arch.h"
#include "os/sys.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>

#include <shim/banned.h>

#define CPU_SECONDS_MAX 4
#define TRIES		3
#define REAL_SECONDS_MAX \
	30 /* the function may wait for a lock that stays locked */

enum end { END_UNKNOWN, END_RETURNED, END_CRASHED, END_LATE };

/* The caller ensures one call at a time. */
static struct {
	int (*call)(void *argument);
	void *argument;
	void *stack;
	size_t stack_size;
	/* Written by the child. */
	enum end end;
	int result;
} work;

#ifndef ARCH_NO_APART
/* --- in the child --- */

static const int ends[] = { SIGSEGV, SIGBUS, SIGFPE,  SIGILL, SIGABRT,
			    SIGTRAP, SIGSYS, SIGPROF, SIGALRM };

static void exit_child(void) __attribute__((noreturn));

static void exit_child(void)
{
	sys_end_process(work.end != END_RETURNED);
}

static void on_signal(int number)
{
	work.end = number == SIGPROF || number == SIGALRM ? END_LATE :
							    END_CRASHED;
	exit_child();
}

static void ignore_signal(void)
{
}

/* The child has its own signal handlers; the program's stay unchanged. */
static void catch_signals(void)
{
	struct sys_action action = {
		.handler = (void *)on_signal,
		.flags = SA_ONSTACK | 0x04000000 /* SA_RESTORER */,
		.restorer = ignore_signal,
		.mask = ~0ull,
	};
	uint64_t blocked = ~0ull;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		sys_signal_action(ends[i], &action, NULL);
		blocked &= ~(1ull << (ends[i] - 1));
	}
	sys_set_signal_stack(work.stack, work.stack_size);
	sys_set_signals(blocked);
}

/* The child must not return from this frame, because its parent uses the frame above
 * it. */
static void run_child(void) __attribute__((noreturn, noinline));

static void run_child(void)
{
	/* The child ends if the waiting thread does. */
	sys_end_with_parent();
	catch_signals();
	sys_limit_time(ITIMER_PROF, CPU_SECONDS_MAX);
	sys_limit_time(ITIMER_REAL, REAL_SECONDS_MAX);
	work.result = work.call(work.argument);
	work.end = END_RETURNED;
	exit_child();
}
#endif

/* --- in the parent --- */

static bool is_equal(const char *a, const char *b, long size)
{
	while (size > 0 && a[size - 1] == b[size - 1])
		size--;
	return size == 0;
}

/* After unshare(CLONE_NEWPID) the first child becomes the init of the new namespace,
 * which the program itself must create. */
static bool is_namespace_ours(void)
{
	char now[64], next[64];
	long a = sys_read_link("/proc/thread-self/ns/pid", now, sizeof(now));
	long b = sys_read_link("/proc/thread-self/ns/pid_for_children", next,
			       sizeof(next));

	return a < 0 || b < 0 || (a == b && is_equal(now, next, a));
}

#ifdef ARCH_NO_APART
static int run_isolated(int *result)
{
	*result = work.call(work.argument);
	return 0;
}
#else
static int run_isolated(int *result)
{
	long pid = -EINTR, r = -EINTR;
	int status = -1;

	for (int i = 0; i < TRIES && pid < 0; i++)
		pid = sys_run_sharing(run_child);
	if (pid < 0)
		return (int)pid;
	for (int i = 0; i < TRIES && r < 0; i++)
		r = sys_wait_process(pid, &status);
	/* Emulators give the child a copy of the memory, so its result is lost.  But
	 * the function did not crash, so the parent can call it. */
	if (work.end == END_UNKNOWN && status == 0) {
		*result = work.call(work.argument);
		return 0;
	}
	*result = work.result;
	switch (work.end) {
	case END_RETURNED: return 0;
	case END_LATE: return -ETIME;
	default: return -EFAULT;
	}
}
#endif

int isolated_call(int (*call)(void *argument), void *argument, void *stack,
		  size_t size, int *result)
{
	work.call = call;
	work.argument = argument;
	work.stack = stack;
	work.stack_size = size;
	work.end = END_UNKNOWN;
	if (sys_is_forbidden() || !is_namespace_ours())
		return -EPERM;
	return run_isolated(result);
}
