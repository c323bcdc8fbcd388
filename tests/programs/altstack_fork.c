/*
 * A signal handler on an alternate stack forks, and both processes go on.
 *
 * tree:
 *	main 1
 *	main;down 1
 *	main;down;down 1
 *	main;down;down;down 1
 *	main;down;down;down;on_signal 1
 *	main;down;down;down;on_signal;split 1
 *	main;down;down;down;on_signal;split;leaf 3
 *	main;down;down;down;on_signal;leaf 2
 *	main;down;down;down;leaf 2
 *	main;down;down;leaf 2
 *	main;down;leaf 2
 *	main;leaf 2
 */
#define _GNU_SOURCE
#include "truth.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

static unsigned long *leaves; /* shared by both processes */

static APART void leaf(void)
{
	__atomic_fetch_add(leaves, 1, __ATOMIC_RELAXED);
}

static APART void split(void)
{
	leaf();
	fork();
	leaf();
}

static APART void on_signal(int signal)
{
	(void)signal;
	split();
	leaf();
}

static APART void down(int n)
{
	if (n > 1)
		down(n - 1);
	else
		raise(SIGUSR1);
	leaf();
}

QUIET static void print_leaves(void)
{
	char line[100];

	snprintf(line, sizeof(line), "calls leaf %lu\n", *leaves);
	print_text(line);
}

int main(void)
{
	static char memory[65536];
	stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = SA_ONSTACK };
	pid_t self = getpid();

	leaves = mmap(NULL, sizeof(*leaves), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	down(3);
	leaf();
	while (wait(NULL) > 0)
		;
	if (getpid() == self)
		print_leaves();
	return 0;
}
