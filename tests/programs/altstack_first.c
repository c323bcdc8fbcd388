/*
 * The first call of a thread is in a signal handler on an alternate stack.
 *
 * tree:
 *	on_signal 2
 *	on_signal;leaf 2
 *	work 2
 *	work;throws 2
 *	work;throws;leaf 2
 *	work;leaf 2
 */
#define _GNU_SOURCE
#include "truth.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

static APART void leaf(void)
{
	COUNTED;
}

static APART void on_signal(int signal)
{
	(void)signal;
	COUNTED;
	leaf();
}

static APART void throws(jmp_buf *buffer)
{
	COUNTED;
	leaf();
	longjmp(*buffer, 1);
}

static APART void work(void)
{
	jmp_buf buffer;

	COUNTED;
	if (setjmp(buffer) == 0)
		throws(&buffer);
	leaf();
}

QUIET static void *run(void *memory)
{
	stack_t stack = { .ss_sp = memory, .ss_size = 65536 };

	sigaltstack(&stack, NULL);
	raise(SIGUSR1);
	work();
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	return NULL;
}

QUIET int main(void)
{
	static char memory[2][65536];
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = SA_ONSTACK };
	pthread_t thread;

	sigaction(SIGUSR1, &action, NULL);
	if (pthread_create(&thread, NULL, run, memory[1]) == 0)
		pthread_join(thread, NULL);
	run(memory[0]);
	print_counts();
	return 0;
}
