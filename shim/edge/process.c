/*
 * Wrappers for processes: fork and its variants, exits that skip the exit handlers, and
 * the calls by which a program forbids system calls, which also affects shim.
 */
#define _GNU_SOURCE
#include "edge/edge.h"

#include "arch.h"
#include "coverage/coverage.h"
#include "dispatch/frame_exits.h"
#include "image/image.h"
#include "monitor/monitor.h"
#include "os/clock.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "runtime/events.h"
#include "runtime/log.h"
#include "runtime/record.h"
#include "runtime/state.h"
#include "sampling/open_before.h"
#include "sampling/sample.h"
#include "unwind/second.h"

#include <errno.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <shim/attach.h>
#include <shim/cpu.h>
#include <shim/format.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <shim/banned.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH /* headers before Linux 5.11 */
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_ON	     1
#endif

#define HIDDEN __attribute__((visibility("hidden")))

/* --- fork --- */

static int record_child(void *unused)
{
	(void)unused;
	if (record_fork() == 0)
		image_forked();
	return 0;
}

/* Blocks the sampler's signal: it would restart a fork that takes longer than a period
 * again and again. */
static void before_fork(void)
{
	sample_signal_block(true);
	coverage_forks();
	state_fork_begins();
	open_before_forks();
}

static void after_fork_in_parent(void)
{
	state_fork_ended();
	sample_signal_block(false);
}

/* Ends the recording in a child.  The child's profilers release the parent's data, and
 * get no further event. */
static void stop_recording(const char *reason)
{
	log_line("a forked child is not recorded: %s", reason);
	record_give_up();
	RAISE(forked);
	sample_give_up();
	/* Coverage needs system calls, so it ends first. */
	coverage_give_up("a forked child is not recorded");
	sys_forbid();
}

static void after_fork_in_child(void)
{
	bool is_whole = state_forked();

	sys_signals_forked();
	if (state_get() != STATE_RUNNING)
		return;
	if (!is_whole) {
		stop_recording(
			"another thread was changing shim's data during the "
			"fork");
		return;
	}
	thread_forked();
	open_before_forked();
	second_forked();
	/* The parent sets its own state later than it switches the hooks. */
	if (profrun_attach_state != SHIM_ATTACH_NEVER)
		profrun_attach_state = record_is_detached() ?
					       SHIM_ATTACH_DETACHED :
					       SHIM_ATTACH_RECORDS;
	if (record_is_detached()) {
		/* Another attach, to the child, begins a recording of the child's. */
		record_give_up();
		sample_forked();
		return;
	}
	if (state_call_locked(record_child, NULL) < 0) {
		stop_recording("signals cannot be blocked");
		return;
	}
	RAISE(forked);
	/* Comes after profilers have released the parent's data. */
	sample_forked();
}

typedef int (*atfork_function)(void (*prepare)(void), void (*parent)(void),
			       void (*child)(void), void *object);

static atfork_function real_register_atfork;

EDGE int __register_atfork(void (*prepare)(void), void (*parent)(void),
			   void (*child)(void), void *object);

/* libc calls shim's functions at every fork that goes through libc, also by daemon and
 * forkpty. */
static void register_own(void)
{
	static bool is_registered;

	if (!real_register_atfork)
		real_register_atfork = (atfork_function)lookup_real(
			"__register_atfork");
	if (real_register_atfork &&
	    !__atomic_exchange_n(&is_registered, true, __ATOMIC_ACQ_REL))
		real_register_atfork(before_fork, after_fork_in_parent,
				     after_fork_in_child, NULL);
}

/*
 * Where pthread_atfork ends.  In a child, libc calls the handlers in the order in which they
 * were set.  Shim's is the first, also if a constructor that comes before shim's sets another
 * one: until shim's has run, calls of the child are written into the parent's recording.
 */
int __register_atfork(void (*prepare)(void), void (*parent)(void),
		      void (*child)(void), void *object)
{
	register_own();
	return real_register_atfork(prepare, parent, child, object);
}

static pid_t (*real_Fork)(void);

EDGE pid_t _Fork(void);

pid_t _Fork(void)
{
	pid_t pid;

	if (!real_Fork)
		real_Fork = (pid_t(*)(void))lookup_real("_Fork");
	before_fork();
	pid = real_Fork();
	if (pid == 0)
		after_fork_in_child();
	else
		after_fork_in_parent();
	return pid;
}

HIDDEN bool edge_syscall_copies(long number, const void *arguments,
				size_t size);

/* Whether the child of a clone3 begins as that of fork does: with a copy of the memory,
 * and on the same stack.  The program may pass anything, to learn what the kernel knows. */
bool edge_syscall_copies(long number, const void *arguments, size_t size)
{
	struct clone_args clone;

	(void)number;
	return size >= CLONE_ARGS_SIZE_VER0 &&
	       sys_peek(arguments, &clone, CLONE_ARGS_SIZE_VER0) == 0 &&
	       (clone.flags & CLONE_VM) == 0 && clone.stack == 0;
}

/* Called by arch/.../edge.S for syscall(SYS_fork), and for a clone that copies the
 * memory. */
HIDDEN long edge_syscall_fork(long number, long a, long b, long c, long d,
			      long e);

long edge_syscall_fork(long number, long a, long b, long c, long d, long e)
{
	long result;

	before_fork();
	result = sys_pass_on(number, a, b, c, d, e, 0);
	if (result == 0)
		after_fork_in_child();
	else
		after_fork_in_parent();
	if (result < 0) {
		errno = (int)-result;
		return -1;
	}
	return result;
}

HIDDEN long edge_syscall_failed(long result);

long edge_syscall_failed(long result)
{
	errno = (int)-result;
	return -1;
}

/* --- vfork and clone: another task with the caller's thread-local storage --- */

HIDDEN void edge_vfork_before(void);
HIDDEN long edge_vfork_after(long result);

/* The child of vfork runs with the memory of its parent, which continues when the child
 * executes a program or ends.  What it forbids ends then. */
static __thread bool is_vforking, child_forbids;
static uint32_t forbidding_children;
static bool is_system_closed;

static void close_system_of_child(void)
{
	if (child_forbids)
		return;
	child_forbids = true;
	__atomic_fetch_add(&forbidding_children, 1, __ATOMIC_ACQ_REL);
	sys_forbid();
}

static void open_system_after_child(void)
{
	if (!child_forbids)
		return;
	child_forbids = false;
	if (__atomic_sub_fetch(&forbidding_children, 1, __ATOMIC_ACQ_REL) ==
		    0 &&
	    !__atomic_load_n(&is_system_closed, __ATOMIC_ACQUIRE))
		sys_allow();
}

bool edge_is_vfork_child(void)
{
	return is_vforking;
}

void edge_vfork_before(void)
{
	RAISE(tls_shared, 1);
	is_vforking = true;
}

/* Ends the calls that the child has made.  Their frames are below the frame that vfork
 * returns to (arch/.../edge.S). */
long edge_vfork_after(long result)
{
	is_vforking = false;
	edge_exec_vforked();
	open_system_after_child();
	frame_exits_unwound(SHIM_CALLER_SP + 16, NULL, false);
	RAISE(tls_shared, 0);
	return result < 0 ? edge_syscall_failed(result) : result;
}

typedef int (*clone_function)(int (*)(void *), void *, int, void *, ...);

static clone_function real_clone;

EDGE int clone(int (*call)(void *), void *stack, int flags, void *argument,
	       ...);

/* A child of clone begins in its function, on a stack of its own.  Without CLONE_VM it
 * has a copy of the memory, and needs a recording of its own. */
struct start {
	int (*call)(void *);
	void *argument;
};

static int start_copied(void *argument)
{
	struct start *start = argument;

	after_fork_in_child();
	return start->call(start->argument);
}

int clone(int (*call)(void *), void *stack, int flags, void *argument, ...)
{
	struct start start = { call, argument };
	void *parent_tid, *tls, *child_tid;
	va_list arguments;
	int result;

	if (!real_clone)
		real_clone = (clone_function)lookup_real("clone");
	va_start(arguments, argument);
	parent_tid = va_arg(arguments, void *);
	tls = va_arg(arguments, void *);
	child_tid = va_arg(arguments, void *);
	va_end(arguments);
	if ((flags & CLONE_VM) == 0) {
		before_fork();
		result = real_clone(start_copied, stack, flags, &start,
				    parent_tid, tls, child_tid);
		after_fork_in_parent();
		return result;
	}
	if (flags & CLONE_SETTLS)
		return real_clone(call, stack, flags, argument, parent_tid, tls,
				  child_tid);
	/* The bit stays set, because shim does not see the end of that task. */
	if (thread_current) {
		thread_current->state |= THREAD_SHARED;
		thread_current->callback_room_size = 0;
	}
	RAISE(tls_shared, 1);
	return real_clone(call, stack, flags, argument, parent_tid, tls,
			  child_tid);
}

/* --- exits --- */

static void (*real_exit_now)(int) __attribute__((noreturn));
static void (*real_exit)(int) __attribute__((noreturn));
static void (*real_quick_exit)(int) __attribute__((noreturn));
static void (*real_abort)(void) __attribute__((noreturn));

typedef void (*exit_function)(int) __attribute__((noreturn));
typedef void (*abort_function)(void) __attribute__((noreturn));

EDGE void _exit(int status)
{
	if (!real_exit_now)
		real_exit_now = (exit_function)lookup_real("_exit");
	edge_shutdown_ends();
	edge_write_end(SHIM_END_EXIT, status);
	real_exit_now(status);
}

EDGE void _Exit(int status)
{
	_exit(status);
}

EDGE void exit(int status)
{
	if (!real_exit)
		real_exit = (exit_function)lookup_real("exit");
	edge_shutdown_begins();
	real_exit(status);
}

EDGE void quick_exit(int status)
{
	if (!real_quick_exit)
		real_quick_exit = (exit_function)lookup_real("quick_exit");
	edge_shutdown_begins();
	edge_write_end(SHIM_END_EXIT, status);
	real_quick_exit(status);
}

EDGE void abort(void)
{
	if (!real_abort)
		real_abort = (abort_function)lookup_real("abort");
	edge_shutdown_begins();
	monitor_finish();
	edge_write_end(SHIM_END_ABORT, 0);
	real_abort();
}

/* --- seccomp --- */

static void close_clock(void)
{
	if (state_get() != STATE_RUNNING)
		return;
	clock_close();
	RAISE(clock_unavailable);
}

static void close_system(const char *by)
{
	if (state_get() != STATE_RUNNING)
		return;
	if (is_vforking) {
		close_system_of_child();
		return;
	}
	if (__atomic_exchange_n(&is_system_closed, true, __ATOMIC_ACQ_REL))
		return;
	record_note_clocks();
	RAISE(system_closing);
	sample_stop();
	coverage_give_up("the program restricts its system calls");
	log_line("the program restricts its system calls (%s): shim makes no "
		 "more system calls, and new call paths may be lost",
		 by);
	sys_forbid();
}

/* A program that asks whether the kernel has filters, as libseccomp does for each flag,
 * sets none: the kernel answers EFAULT. */
static bool sets_filter(unsigned long mode, unsigned long filter)
{
	return mode == SECCOMP_MODE_STRICT || filter != 0;
}

/* The strict mode of seccomp also forbids reading the processor's counter. */
static void before_prctl(long option, unsigned long argument,
			 unsigned long filter)
{
	if (option == PR_SET_SECCOMP && sets_filter(argument, filter))
		close_system("seccomp");
	/* Calls of other code than the program has chosen raise SIGSYS. */
	if (option == PR_SET_SYSCALL_USER_DISPATCH &&
	    argument == PR_SYS_DISPATCH_ON)
		close_system("PR_SET_SYSCALL_USER_DISPATCH");
	if (option == PR_SET_SECCOMP && argument == SECCOMP_MODE_STRICT)
		close_clock();
	if (option == PR_SET_TSC && argument == PR_TSC_SIGSEGV)
		close_clock();
}

HIDDEN void edge_syscall_closing(long number, long operation, long argument,
				 unsigned long filter);

/* prctl() and seccomp() have the filter as their third argument. */
void edge_syscall_closing(long number, long operation, long argument,
			  unsigned long filter)
{
	if (number == SYS_prctl)
		before_prctl(operation, (unsigned long)argument, filter);
	else if (operation == SECCOMP_SET_MODE_STRICT)
		before_prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0);
	else if (operation == SECCOMP_SET_MODE_FILTER)
		before_prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter);
}

EDGE int prctl(int option, ...);

int prctl(int option, ...)
{
	static int (*real)(int, ...);
	unsigned long a, b, c, d;
	va_list arguments;
	int result;

	va_start(arguments, option);
	a = va_arg(arguments, unsigned long);
	b = va_arg(arguments, unsigned long);
	c = va_arg(arguments, unsigned long);
	d = va_arg(arguments, unsigned long);
	va_end(arguments);
	if (!real)
		real = (int (*)(int, ...))lookup_real("prctl");
	before_prctl(option, a, b);
	result = real(option, a, b, c, d);
	if (option == PR_SET_NAME && result == 0)
		edge_thread_named((const char *)a);
	return result;
}

void edge_process_resolve(void)
{
	real_Fork = (pid_t(*)(void))lookup_real("_Fork");
	real_clone = (clone_function)lookup_real("clone");
	real_exit_now = (exit_function)lookup_real("_exit");
	real_exit = (exit_function)lookup_real("exit");
	real_quick_exit = (exit_function)lookup_real("quick_exit");
	real_abort = (abort_function)lookup_real("abort");
	register_own();
}
