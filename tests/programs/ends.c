/*
 * ends HOW - calls leaf 1000 times and ends, three calls deep.
 */
#define _GNU_SOURCE
#include "truth.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>

static const char *how;

static APART void leaf(void)
{
	COUNTED;
}

QUIET static int is(const char *name)
{
	return strcmp(how, name) == 0;
}

static APART int end(void)
{
	COUNTED;
	for (int i = 0; i < 1000; i++)
		leaf();
	print_counts();
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
	return middle();
}
