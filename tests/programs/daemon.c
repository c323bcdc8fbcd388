/*
 * After a daemon has closed all descriptors, it is still recorded, new threads as well.
 *
 * tree:
 *	main 1
 *	main;before 1
 *	main;before;leaf 10
 *	main;after 1
 *	main;after;leaf 1000
 *	main;after;down 3000
 *	worker 3
 *	worker;leaf 300
 *	*
 */
#define _GNU_SOURCE
#include "truth.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

static APART void leaf(void)
{
	COUNTED;
}

static APART void before(void)
{
	COUNTED;
	for (int i = 0; i < 10; i++)
		leaf();
}

/* Makes enough paths that files must grow. */
static APART void down(int n)
{
	COUNTED;
	if (n > 0)
		down(n - 1);
}

static void *worker(void *argument)
{
	COUNTED;
	for (int i = 0; i < 100; i++)
		leaf();
	return argument;
}

static APART void after(void)
{
	pthread_t thread;

	COUNTED;
	for (int i = 0; i < 1000; i++)
		leaf();
	for (int i = 0; i < 3000; i++)
		down(i % 300 * 20);
	for (int i = 0; i < 3; i++) {
		pthread_create(&thread, NULL, worker, NULL);
		pthread_join(thread, NULL);
	}
}

QUIET static void copy_out(int fd)
{
	char buffer[4096];
	ssize_t size;

	while ((size = read(fd, buffer, sizeof(buffer) - 1)) > 0) {
		buffer[size] = '\0';
		print_text(buffer);
	}
}

int main(void)
{
	int ends[2];
	pid_t middle;

	COUNTED;
	before();
	if (pipe(ends) < 0)
		return 1;
	middle = fork();
	if (middle > 0) {
		waitpid(middle, NULL, 0);
		close(ends[1]);
		copy_out(ends[0]);
		_exit(0);
	}
	if (daemon(0, 1) < 0)
		_exit(1);
	for (int fd = 0; fd < 1024; fd++)
		if (fd != ends[1])
			close(fd);
	close_range(1024, ~0u, 0);
	umask(0777);
	after();
	/* Only now, because print_text writes to 1. */
	dup2(ends[1], 1);
	print_counts();
	_exit(0);
}
