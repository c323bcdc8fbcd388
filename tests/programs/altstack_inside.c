/*
 * The alternate stack is a variable of a function, so that it lies above the frames that the
 * signal interrupts; later it is another one, and then there is none.
 *
 * tree:
 *	main 1
 *	main;holds 2
 *	main;holds;down 2
 *	main;holds;down;down 2
 *	main;holds;down;down;down 2
 *	main;holds;down;down;down;on_signal 2
 *	main;holds;down;down;down;on_signal;leaf 2
 *	main;holds;down;down;down;on_signal;nested 2
 *	main;holds;down;down;down;on_signal;nested;on_other 2
 *	main;holds;down;down;down;on_signal;nested;on_other;leaf 2
 *	main;holds;down;down;down;on_signal;nested;leaf 2
 *	main;holds;down;down;down;leaf 2
 *	main;holds;down;down;leaf 2
 *	main;holds;down;leaf 2
 *	main;holds;leaf 2
 *	main;on_signal 1
 *	main;on_signal;leaf 1
 *	main;on_signal;nested 1
 *	main;on_signal;nested;on_other 1
 *	main;on_signal;nested;on_other;leaf 1
 *	main;on_signal;nested;leaf 1
 *	main;fills 1
 *	main;fills;leaf 1
 */
#define _GNU_SOURCE
#include "truth.h"

#include <signal.h>

static APART void leaf(void)
{
	COUNTED;
}

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
	leaf();
}

static APART void on_signal(int signal)
{
	(void)signal;
	COUNTED;
	leaf();
	nested();
}

static APART void down(int n)
{
	COUNTED;
	if (n > 1)
		down(n - 1);
	else
		raise(SIGUSR1);
	leaf();
}

static APART void holds(char *memory, size_t size)
{
	char own[32768];
	stack_t stack = { .ss_sp = memory ? memory : own,
			  .ss_size = memory ? size : sizeof(own) };

	COUNTED;
	sigaltstack(&stack, NULL);
	down(3);
	leaf();
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
}

/* Its frame is where the alternate stack was. */
static APART void fills(void)
{
	volatile char memory[49152];

	COUNTED;
	memory[0] = 1;
	leaf();
}

int main(void)
{
	char memory[32768];
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = SA_ONSTACK };

	COUNTED;
	sigaction(SIGUSR1, &action, NULL);
	action.sa_handler = on_other;
	sigaction(SIGUSR2, &action, NULL);
	holds(NULL, 0);
	holds(memory, sizeof(memory));
	raise(SIGUSR1);
	fills();
	print_counts();
	return 0;
}
