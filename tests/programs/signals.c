/*
 * A signal may arrive at any instruction, also inside a hook: every call counts.
 *
 * The handler's own calls are below the interrupted function, so the tree is compared
 * without them.
 *
 * cut: on_tick
 * tree:
 *	main 1
 *	main;worker 4
 *	main;worker;outer 400000
 *	main;worker;outer;middle 800000
 *	main;worker;outer;middle;inner 1600000
 *	main;worker;fresh 4
 *	*
 */
#define _GNU_SOURCE
#include "truth.h"

#include <signal.h>
#include <time.h>

#ifndef TICK_NS		/* emulators need more */
#define TICK_NS 50000
#endif

static volatile int depth;
static unsigned long ticks;

static APART void handled(void)
{
	COUNTED;
}

static APART void on_tick(int signal)
{
	(void)signal;
	COUNTED;
	__atomic_fetch_add(&ticks, 1, __ATOMIC_RELAXED);
	handled();
	handled();
}

static APART void inner(void)
{
	COUNTED;
}

static APART void middle(void)
{
	COUNTED;
	inner();
	inner();
}

static APART void outer(void)
{
	COUNTED;
	middle();
	middle();
}

/* Makes new paths all the time, so that signals interrupt the slow path, too. */
static APART void fresh(int n)
{
	COUNTED;
	if (n > 0)
		fresh(n - 1);
	if (n % 2)
		inner();
}

static APART void worker(void)
{
	static int round;

	COUNTED;
	for (int i = 0; i < 100000; i++)
		outer();
	fresh(2000 * ++round);
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_tick,
				    .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
				  .sigev_signo = SIGUSR1 };
	struct itimerspec spec = { { 0, TICK_NS }, { 0, TICK_NS } };
	timer_t timer;

	COUNTED;
	sigaction(SIGUSR1, &action, NULL);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &spec, NULL);
	for (int i = 0; i < 4; i++)
		worker();
	timer_delete(timer);
	print_counts();
	return 0;
}
