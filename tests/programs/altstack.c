/*
 * A signal handler on an alternate stack is called by the interrupted function.
 *
 * cut: on_tick
 * tree:
 *	main 1
 *	main;leaf 400000
 *	main;pushed 1000
 *	main;pushed;on_signal 1000
 *	main;pushed;on_signal;leaf 1000
 *	main;pushed;on_signal;nested 1000
 *	main;pushed;on_signal;nested;on_other 1000
 *	main;pushed;on_signal;nested;on_other;leaf 1000
 *	main;pushed;leaf 1000
 */
#define _GNU_SOURCE
#include "truth.h"

#include <signal.h>
#include <sys/time.h>

static APART void leaf(void)
{
	COUNTED;
}

/* Handles a second signal while the alternate stack is in use. */
static APART void on_other(int signal)
{
	(void)signal;
	COUNTED;
	leaf();
}

static APART void nested(void)
{
	COUNTED;
	raise(SIGUSR2);
}

static APART void on_signal(int signal)
{
	(void)signal;
	COUNTED;
	leaf();
	nested();
}

static APART void on_tick(int signal)
{
	(void)signal;
	COUNTED;
	leaf();
}

static APART void pushed(void)
{
	COUNTED;
	raise(SIGUSR1);
	leaf();
}

int main(void)
{
	static char memory[65536];
	stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = SA_ONSTACK };
	struct itimerval often = { { 0, 100 }, { 0, 100 } };
	struct itimerval never = { { 0, 0 }, { 0, 0 } };

	COUNTED;
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	action.sa_handler = on_other;
	sigaction(SIGUSR2, &action, NULL);
	for (int i = 0; i < 1000; i++)
		pushed();
	action.sa_handler = on_tick;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 400000; i++)
		leaf();
	setitimer(ITIMER_REAL, &never, NULL);
	print_counts();
	return 0;
}
