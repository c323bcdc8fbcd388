/*
 * A forked child records its own calls after the fork.
 *
 * tree:
 *	main 1
 *	main;deep 1
 *	main;deep;deep 1
 *	main;deep;deep;deep 1
 *	main;deep;deep;deep;split 1
 *	main;deep;deep;deep;split;leaf 7
 *	main;deep;deep;deep;leaf 4
 *	main;deep;deep;leaf 4
 *	main;deep;leaf 4
 *	main;leaf 4
 *	main;busy 1
 *	main;busy;in_child 20
 *	main;busy;in_child;leaf 20
 *	worker 1
 *	*
 */
#include "truth.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

static unsigned long *leaves;	/* shared by all processes */
static volatile int stop;

static APART void leaf(void)
{
	__atomic_fetch_add(leaves, 1, __ATOMIC_RELAXED);
}

/* Results in four processes; leaf is called by one, by two, by four. */
static APART void split(void)
{
	leaf();
	fork();
	leaf();
	fork();
	leaf();
}

static APART void deep(int n)
{
	if (n > 1)
		deep(n - 1);
	else
		split();
	leaf();
}

static APART void in_child(void)
{
	leaf();
}

static void *worker(void *argument)
{
	COUNTED;
	while (!stop)
		leaf();
	return argument;
}

/* Forks while another thread runs hooks without pause. */
static APART void busy(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, worker, NULL);
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			in_child();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	stop = 1;
	pthread_join(thread, NULL);
}

QUIET static void print_leaves(void)
{
	char line[100];

	snprintf(line, sizeof(line), "calls leaf %lu\n", *leaves);
	print_text(line);
}

int main(void)
{
	pid_t self = getpid();

	leaves = mmap(NULL, sizeof(*leaves), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	deep(3);
	leaf();
	while (wait(NULL) > 0)
		;
	if (getpid() != self)
		exit(0);
	busy();
	print_leaves();
	return 0;
}
