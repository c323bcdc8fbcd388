/*
 * Programs that are started in every way record for themselves.
 *
 * `child N` is this program again; it calls leaf N times, and N = 1 and 5 execute
 * themselves with 5 and 4.
 *
 * tree:
 *	main 8
 *	main;by_vfork 1
 *	main;by_vfork;leaf 1
 *	main;by_spawn 1
 *	main;by_spawn;leaf 1
 *	main;by_system 1
 *	main;by_system;leaf 1
 *	main;by_popen 1
 *	main;by_popen;leaf 1
 *	main;by_fork 1
 *	main;by_fork;leaf 1
 *	main;many_vforks 1
 *	in_child 1000
 *	in_child;leaf 1000
 *	main;many_vforks;leaf 1000
 *	main;fails 1
 *	main;fails;leaf 1
 *	main;child 7
 *	main;child;leaf 60
 *	*
 */
#define _GNU_SOURCE
#include "truth.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

extern char **environ;
static char *self;

static APART void leaf(void)
{
	COUNTED;
}

static APART void child(int count)
{
	COUNTED;
	for (int i = 0; i < count; i++)
		leaf();
	if (count == 1)		/* an exec chain */
		execl(self, self, "child", "5", NULL);
	if (count == 5)
		execl(self, self, "child", "4", NULL);
}

QUIET static void print_end(const char *what, int status)
{
	char line[100];

	snprintf(line, sizeof(line), "%s: %d\n", what, status);
	print_text(line);
}

static APART void by_vfork(void)
{
	int status = 0;
	pid_t pid;

	COUNTED;
	pid = vfork();
	if (pid == 0) {
		execl(self, self, "child", "20", NULL);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	print_end("vfork", status);
	leaf();
}

static APART void by_spawn(void)
{
	char *arguments[] = { self, "child", "10", NULL };
	int status = 0;
	pid_t pid;

	COUNTED;
	posix_spawn(&pid, self, NULL, NULL, arguments, environ);
	waitpid(pid, &status, 0);
	print_end("posix_spawn", status);
	leaf();
}

static APART void by_system(void)
{
	char command[4200];

	COUNTED;
	snprintf(command, sizeof(command), "'%s' child 12", self);
	print_end("system", system(command));
	leaf();
}

static APART void by_popen(void)
{
	char command[4200];
	FILE *pipe;

	COUNTED;
	snprintf(command, sizeof(command), "'%s' child 8; echo x", self);
	pipe = popen(command, "r");
	while (getc(pipe) != EOF)
		;
	print_end("popen", pclose(pipe));
	leaf();
}

static APART void by_fork(void)
{
	int status = 0;
	pid_t pid;

	COUNTED;
	pid = fork();
	if (pid == 0) {
		execl(self, self, "child", "1", NULL);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	print_end("fork", status);
	leaf();
}

static APART void in_child(void)
{
	COUNTED;
	leaf();
}

/* The child runs on the parent's stack and in its memory, but does not inherit the
 * parent's calls. */
static APART void many_vforks(void)
{
	int status = 0, bad = 0;

	COUNTED;
	for (volatile int i = 0; i < 1000; i++) {
		pid_t pid = vfork();

		if (pid == 0) {
			in_child();
			_exit(7);
		}
		waitpid(pid, &status, 0);
		bad += WEXITSTATUS(status) != 7;
		leaf();
	}
	print_end("bad", bad);
}

/* An exec that fails changes nothing. */
static APART void fails(void)
{
	COUNTED;
	execl("/nonexistent/program", "x", NULL);
	print_end("exec", errno == ENOENT);
	leaf();
}

int main(int count, char **arguments)
{
	COUNTED;
	self = realpath("/proc/self/exe", NULL);
	if (count == 3) {
		child((int)strtol(arguments[2], NULL, 10));
		return 0;
	}
	by_vfork();
	by_spawn();
	by_system();
	by_popen();
	by_fork();
	many_vforks();
	fails();
	return 0;
}
