/*
 * Signals may arrive while shim handles a jump.
 *
 * cut: on_tick
 * tree:
 *	main 1
 *	main;away 200000
 *	main;after 200000
 *	*
 */
#define _GNU_SOURCE
#include "truth.h"

#include <setjmp.h>
#include <signal.h>
#include <time.h>

#ifndef TICK_NS		/* emulators need more */
#define TICK_NS 50000
#endif

static void right(unsigned bits);

/* Makes a path for each number. */
static APART void left(unsigned bits)
{
	COUNTED;
	if (bits > 3)
		bits & 1 ? right(bits >> 1) : left(bits >> 1);
}

static APART void right(unsigned bits)
{
	COUNTED;
	if (bits > 3)
		bits & 1 ? right(bits >> 1) : left(bits >> 1);
}

static APART void on_tick(int signal)
{
	static unsigned n;

	(void)signal;
	COUNTED;
	left(++n % 65536);
}

static jmp_buf place;

static APART void away(void)
{
	COUNTED;
	longjmp(place, 1);
}

static APART void after(void)
{
	COUNTED;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_tick,
				    .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
				  .sigev_signo = SIGUSR1 };
	struct itimerspec spec = { { 0, TICK_NS }, { 0, TICK_NS } };
	static volatile int i;
	timer_t timer;

	COUNTED;
	sigaction(SIGUSR1, &action, NULL);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &spec, NULL);
	for (i = 0; i < 200000; i++) {
		if (setjmp(place) == 0)
			away();
		after();
	}
	timer_delete(timer);
	print_counts();
	return 0;
}
