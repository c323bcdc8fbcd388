#define _GNU_SOURCE
#include "inspect/isolated_call.h"

#include "arch.h"
#include "os/sys.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <shim/banned.h>

#define CPU_SECONDS_MAX 4
#define TRIES 3
#define REAL_SECONDS_MAX 30 /* it may wait for a lock that nobody will open */

enum end { END_UNKNOWN, END_RETURNED, END_CRASHED, END_LATE };

/* One at a time: the caller sees to that. */
static struct {
	int (*call)(void *argument);
	void *argument;
	void *stack;
	size_t stack_size;
	/* Told by the process. */
	enum end end;
	int result;
} work;

#ifndef ARCH_NO_APART
/* --- in the process --- */

/* What the kernel reads, which is not what libc's sigaction takes. */
struct kernel_action {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static const int ends[] = { SIGSEGV, SIGBUS, SIGFPE,  SIGILL, SIGABRT,
			    SIGTRAP, SIGSYS, SIGPROF, SIGALRM };

static void leave(void) __attribute__((noreturn));

static void leave(void)
{
	for (;;)
		arch_syscall(SYS_exit_group, work.end != END_RETURNED, 0, 0, 0,
			     0, 0);
}

static void on_signal(int number)
{
	work.end =
		number == SIGPROF || number == SIGALRM ? END_LATE : END_CRASHED;
	leave();
}

static void never(void)
{
}

/* The handlers are the process's own, the program keeps its. */
static void catch_signals(void)
{
	struct kernel_action action = {
		.handler = on_signal,
		.flags = SA_ONSTACK | 0x04000000 /* SA_RESTORER */,
		.restorer = never,
		.mask = ~0ull,
	};
	stack_t stack = { .ss_sp = work.stack, .ss_size = work.stack_size };
	uint64_t blocked = ~0ull;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		arch_syscall(SYS_rt_sigaction, ends[i], (long)&action, 0,
			     sizeof(action.mask), 0, 0);
		blocked &= ~(1ull << (ends[i] - 1));
	}
	arch_syscall(SYS_sigaltstack, (long)&stack, 0, 0, 0, 0, 0);
	arch_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&blocked, 0,
		     sizeof(blocked), 0, 0);
}

static void limit_time(void)
{
	struct itimerval cpu = { .it_value.tv_sec = CPU_SECONDS_MAX };
	struct itimerval real = { .it_value.tv_sec = REAL_SECONDS_MAX };

	arch_syscall(SYS_setitimer, ITIMER_PROF, (long)&cpu, 0, 0, 0, 0);
	arch_syscall(SYS_setitimer, ITIMER_REAL, (long)&real, 0, 0, 0, 0);
}

/* Whose frame must not return: the other process is in the one below. */
static void be_process(void) __attribute__((noreturn, noinline));

static void be_process(void)
{
	/* Ends with the thread that waits. */
	arch_syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
	catch_signals();
	limit_time();
	work.result = work.call(work.argument);
	work.end = END_RETURNED;
	leave();
}
#endif

/* --- in ours --- */

static bool is_equal(const char *a, const char *b, long size)
{
	while (size > 0 && a[size - 1] == b[size - 1])
		size--;
	return size == 0;
}

/* After unshare(CLONE_NEWPID) the first child is the init of a namespace, which
 * is to be the program's. */
static bool is_namespace_ours(void)
{
	char now[64], next[64];
	long a = sys_read_link("/proc/thread-self/ns/pid", now, sizeof(now));
	long b = sys_read_link("/proc/thread-self/ns/pid_for_children", next,
			       sizeof(next));

	return a < 0 || b < 0 || (a == b && is_equal(now, next, a));
}

#ifdef ARCH_NO_APART
static int run(int *result)
{
	*result = work.call(work.argument);
	return 0;
}
#else
/*
 * As vfork does, which lets us wait without a time limit of our own, and which
 * emulators know; without SIGCHLD, so that wait() does not see it.  arch_syscall
 * is inlined: both processes go on in this frame, ours after the other has left.
 */
static long make_process(void)
{
	long pid = arch_syscall(SYS_clone, CLONE_VM | CLONE_VFORK, 0, 0, 0, 0,
				0);

	if (pid == 0)
		be_process();
	return pid;
}

static int run(int *result)
{
	long pid = -EINTR, r = -EINTR;
	int status = -1;

	for (int i = 0; i < TRIES && pid < 0; i++)
		pid = make_process();
	if (pid < 0)
		return (int)pid;
	for (int i = 0; i < TRIES && r < 0; i++)
		r = arch_syscall(SYS_wait4, pid, (long)&status, __WALL, 0, 0,
				 0);
	/* Emulators make a copy of us instead, whose answer is lost; but it has
	 * shown that the call does no harm. */
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
	return run(result);
}
