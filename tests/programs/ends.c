/*
 * ends HOW [filtered] - calls leaf 1000 times and ends, three calls deep; filtered: after it
 * has set a filter for its system calls, and children have ended.
 */
#define _GNU_SOURCE
#include "truth.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const char *how;
static int is_filtered;

static APART void leaf(void)
{
	COUNTED;
}

QUIET static int is(const char *name)
{
	return strcmp(how, name) == 0;
}

/* Allows all. */
QUIET static void set_filter(void)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = { 1, &all };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
}

QUIET static void end_children(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(8);
	waitpid(child, NULL, 0);
	child = vfork();
	if (child == 0)
		_exit(9);
	waitpid(child, NULL, 0);
}

static APART int end(void)
{
	COUNTED;
	for (int i = 0; i < 1000; i++)
		leaf();
	print_counts();
	if (is_filtered) {
		set_filter();
		end_children();
	}
	if (is("exit"))
		exit(3);
	if (is("_exit"))
		_exit(4);
	if (is("_Exit"))
		_Exit(4);
	if (is("quick_exit"))
		quick_exit(5);
	if (is("syscall"))
		syscall(SYS_exit_group, 6);
	if (is("abort"))
		abort();
	if (is("segv"))
		*(volatile int *)8 = 0;
	if (is("term"))
		raise(SIGTERM);
	if (is("kill"))
		kill(getpid(), SIGKILL);
	if (is("failed_exec")) {
		execl("/nope", "nope", NULL);
		kill(getpid(), SIGKILL);
	}
	if (is("trap"))
		__builtin_trap();
	if (is("pthread_exit"))
		pthread_exit(NULL);
	return 7;
}

static APART int middle(void)
{
	COUNTED;
	return end();
}

int main(int count, char **arguments)
{
	COUNTED;
	how = count > 1 ? arguments[1] : "return";
	is_filtered = count > 2;
	return middle();
}
