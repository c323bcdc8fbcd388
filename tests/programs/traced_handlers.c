/*
 * Calls that return their arguments, with signal handlers between the calls and their
 * arguments, which call functions with arguments of their own.
 */
#include "truth.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

#define CALLS 200000

static volatile sig_atomic_t handled;

static APART int steady(int value)
{
	__asm__ volatile("" : "+r"(value));
	return value;
}

static APART int handling(int value)
{
	__asm__ volatile("" : "+r"(value));
	return value;
}

QUIET static void on_tick(int signal)
{
	(void)signal;
	handled++;
	handling(-handled);
}

QUIET int main(void)
{
	struct itimerval every = { { 0, 50 }, { 0, 50 } };

	signal(SIGALRM, on_tick);
	setitimer(ITIMER_REAL, &every, NULL);
	for (int i = 1; i <= CALLS || handled < 1000; i++)
		steady(i);
	printf("handled %d\n", (int)handled);
	return 0;
}
