/*
 * Calls each of 300 functions once while a handler interrupts all the time: where a filter
 * decides on each function at its first call, the handler comes meanwhile.  Prints how often
 * the handler and what it calls ran.
 */
#include "hundreds.h"

#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

static volatile unsigned long handled;

__attribute__((noinline)) void inner(void)
{
	handled++;
}

__attribute__((noinline)) void handler(int signal)
{
	sink = signal;
	inner();
}

int main(void)
{
	struct itimerval often = { { 0, 40 }, { 0, 40 } }, never = { 0 };
	struct sigaction action = { .sa_handler = handler };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	HUNDRED(CALL, 1)
	HUNDRED(CALL, 2)
	HUNDRED(CALL, 3)
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN);
	printf("calls handler %lu\ncalls inner %lu\n", handled, handled);
	return 0;
}
