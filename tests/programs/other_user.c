/*
 * other_user WHAT - becomes another user, and calls functions then: in a thread, children
 * of fork and vfork, and a program that it executes
 *
 *     other_user work            calls them and ends
 *     other_user user            setuid
 *     other_user root            chroot, before setuid
 *     other_user daemon          in a child, when its parent and that one's have ended
 *     other_user unseen          the same, but shim does not see the fork
 *     other_user killed          the same as daemon, and kills itself
 *     other_user full            setuid, with one free descriptor; prints the size of its input
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define USER  65534
#define LIMIT 64
#define APART __attribute__((noinline))
#define QUIET __attribute__((no_instrument_function))

static volatile int sink;

static APART void leaf(void)
{
	sink++;
}

static APART void right(int depth);

static APART void left(int depth)
{
	if (depth > 0) {
		left(depth - 1);
		right(depth - 1);
	} else {
		leaf();
	}
}

/* 2^13 paths and more: a process has room for 4,000 at first. */
static APART void right(int depth)
{
	if (depth > 0) {
		left(depth - 1);
		right(depth - 1);
	} else {
		leaf();
	}
}

static APART void *in_thread(void *unused)
{
	left(12);
	return unused;
}

static APART void in_child(void)
{
	left(12);
}

static APART void in_vfork(void)
{
	left(12);
}

static APART void after(void)
{
	left(12);
}

QUIET static void become(int changes_root)
{
	if (changes_root && (chroot("/var") < 0 || chdir("/") < 0))
		_exit(77);
	if (setgid(USER) < 0 || setuid(USER) < 0)
		_exit(77);
}

QUIET static int everything(const char *program)
{
	pthread_t thread;
	int status = 1;

	after();
	if (pthread_create(&thread, NULL, in_thread, NULL) != 0)
		return 1;
	pthread_join(thread, NULL);
	if (fork() == 0) {
		in_child();
		_exit(0);
	}
	wait(&status);
	if (status == 0 && vfork() == 0) {
		in_vfork();
		_exit(0);
	}
	wait(&status);
	if (status == 0 && program && fork() == 0) {
		execl(program, program, "work", (char *)NULL);
		_exit(1);
	}
	if (program)
		wait(&status);
	return status != 0;
}

/* One is free for a socket, none for a descriptor that comes from there. */
QUIET static int with_one_descriptor(void)
{
	const struct rlimit limit = { LIMIT, LIMIT };
	struct stat input;

	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 1;
	while (dup(0) >= 0)
		;
	close(LIMIT - 1);
	after();
	if (fstat(0, &input) < 0)
		return 1;
	printf("%ld\n", (long)input.st_size);
	return 0;
}

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "";
	pid_t parent = getppid();
	bool is_daemon, is_unseen;

	if (strcmp(what, "work") == 0) {
		after();
		return 0;
	}
	is_daemon = strcmp(what, "daemon") == 0 || strcmp(what, "killed") == 0;
	is_unseen = strcmp(what, "unseen") == 0;
	if (is_daemon || is_unseen) {
		if ((is_daemon ? fork() :
				 syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) != 0)
			return 0;
		/* The test reads the outputs to their end, then waits for profrun. */
		freopen("/dev/null", "w", stdout);
		freopen("/dev/null", "w", stderr);
		while (kill(parent, 0) == 0)
			usleep(1000);
	}
	if (strcmp(what, "killed") == 0)
		raise(SIGKILL);
	become(strcmp(what, "root") == 0);
	if (strcmp(what, "full") == 0)
		return with_one_descriptor();
	count = everything(strcmp(what, "root") == 0 ? NULL : arguments[0]);
	printf("%d\n", count);
	return count;
}
