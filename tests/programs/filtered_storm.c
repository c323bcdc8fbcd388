/*
 * Calls each of 300 functions once while a handler interrupts all the time: where a filter
 * decides on each function at its first call, the handler comes meanwhile.  Prints how often
 * the handler and what it calls ran.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

#define TEN(X, n) \
	X(n##0) \
	X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) X(n##8) \
		X(n##9)
#define HUNDRED(X, n) \
	TEN(X, n##0) \
	TEN(X, n##1) TEN(X, n##2) TEN(X, n##3) TEN(X, n##4) TEN(X, n##5) \
		TEN(X, n##6) TEN(X, n##7) TEN(X, n##8) TEN(X, n##9)

static volatile unsigned long handled;
static volatile int sink;

__attribute__((noinline)) void inner(void)
{
	handled++;
}

__attribute__((noinline)) void handler(int signal)
{
	sink = signal;
	inner();
}

#define FUNCTION(n) \
	__attribute__((noinline)) void once_##n(void) \
	{ \
		sink = 1##n; \
	}
#define CALL(n) once_##n();

HUNDRED(FUNCTION, 1)
HUNDRED(FUNCTION, 2)
HUNDRED(FUNCTION, 3)

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
