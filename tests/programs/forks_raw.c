/*
 * Processes created by system calls and by clone are detected as well.
 *
 * tree:
 *	main 1
 *	main;by_syscall 1
 *	main;by_syscall;leaf 2
 *	main;by_syscall_clone 1
 *	main;by_syscall_clone;leaf 2
 *	main;by_clone3 1
 *	main;by_clone3;leaf 2
 *	main;by_clone 1
 *	main;by_clone;leaf 1
 *	cloned 1
 *	cloned;leaf 1
 *	worker 1
 *	worker;in_thread 1
 *	worker;in_thread;leaf 2
 *	main;leaf 1
 */
#define _GNU_SOURCE
#include "truth.h"

#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static APART void leaf(void)
{
	__asm__ volatile("");
}

static APART void by_syscall(void)
{
#ifdef SYS_fork
	pid_t pid = (pid_t)syscall(SYS_fork);
#else	/* newer architectures have only one way */
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#endif

	leaf();
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
}

static APART void by_syscall_clone(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	leaf();
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
}

/* Old kernels and emulators do not have the call.  Wrong arguments ask for that. */
static APART void by_clone3(void)
{
	struct clone_args arguments = { .exit_signal = SIGCHLD };
	bool is_refused = syscall(SYS_clone3, NULL, 0) < 0 &&
			  syscall(SYS_clone3, (void *)8, sizeof(arguments)) < 0;
	pid_t pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments));

	if (pid < 0)
		pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	leaf();
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	print_text(is_refused ? "refused\n" : "not refused\n");
}

static int cloned(void *argument)
{
	(void)argument;
	leaf();
	return 0;
}

/* The child begins on a stack of its own, in the middle of open calls. */
static APART void by_clone(void)
{
	static char stack[262144] __attribute__((aligned(64)));
	int status = 1;
	pid_t pid = clone(cloned, stack + sizeof(stack), SIGCHLD, NULL);

	waitpid(pid, &status, 0);
	leaf();
	print_text(status == 0 ? "cloned\n" : "not cloned\n");
}

static APART void in_thread(void)
{
	pid_t pid = fork();

	leaf();
	if (pid == 0)
		pthread_exit(NULL);	/* the last thread: ends the process */
	waitpid(pid, NULL, 0);
}

static void *worker(void *argument)
{
	in_thread();
	return argument;
}

int main(void)
{
	pthread_t thread;

	by_syscall();
	by_syscall_clone();
	by_clone3();
	by_clone();
	pthread_create(&thread, NULL, worker, NULL);
	pthread_join(thread, NULL);
	leaf();
	return 0;
}
