/*
 * A signal handler may jump out, from either stack.
 *
 * tree:
 *	main 1
 *	main;leaf 2
 *	main;round_trip 2000
 *	main;round_trip;work 2000
 *	main;round_trip;work;on_signal 1000
 *	main;round_trip;work;on_signal;jump 1000
 *	main;round_trip;work;on_alternate 1000
 *	main;round_trip;work;on_alternate;jump 1000
 *	main;round_trip;leaf 2000
 */
#include "truth.h"

#include <setjmp.h>
#include <signal.h>

static sigjmp_buf buffer;

static void leaf(void)
{
	COUNTED;
}

static void jump(void)
{
	COUNTED;
	siglongjmp(buffer, 1);
}

static void on_signal(int signal)
{
	(void)signal;
	COUNTED;
	jump();
}

static void on_alternate(int signal)
{
	(void)signal;
	COUNTED;
	jump();
}

static void work(int signal)
{
	COUNTED;
	raise(signal);
}

static void round_trip(int signal)
{
	COUNTED;
	if (sigsetjmp(buffer, 1) == 0)
		work(signal);
	leaf();
}

int main(void)
{
	static char memory[65536];
	stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };
	struct sigaction here = { .sa_handler = on_signal };
	struct sigaction there = { .sa_handler = on_alternate,
				   .sa_flags = SA_ONSTACK };

	COUNTED;
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &here, NULL);
	sigaction(SIGUSR2, &there, NULL);
	leaf();
	for (volatile int i = 0; i < 1000; i++) {
		round_trip(SIGUSR1);
		round_trip(SIGUSR2);
	}
	leaf();
	print_counts();
	return 0;
}
