/*
 * Signals may arrive while shim handles a thread's first call or a new path.
 *
 * cut: on_tick
 * tree:
 *	main 1
 *	worker 160
 *	worker;down 160
 *	*
 */
#define _GNU_SOURCE
#include "truth.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#ifndef TICK_NS		/* emulators need more */
#define TICK_NS 50000
#endif

static APART void handled(int n)
{
	COUNTED;
	if (n > 0)
		handled(n - 1);
}

/* The handler makes new paths as well, at any time. */
static APART void on_tick(int signal)
{
	static int n;

	(void)signal;
	COUNTED;
	handled(++n % 50);
}

static APART void down(int n)
{
	COUNTED;
	if (n > 0)
		down(n - 1);
}

static void *worker(void *argument)
{
	COUNTED;
	down((int)(long)argument % 7 * 100);
	return NULL;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_tick,
				    .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
				  .sigev_signo = SIGUSR1 };
	struct itimerspec spec = { { 0, TICK_NS }, { 0, TICK_NS } };
	timer_t timer;
	sigset_t signals;

	COUNTED;
	sigaction(SIGUSR1, &action, NULL);
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &spec, NULL);
	for (long i = 0; i < 40; i++) {
		pthread_t threads[4];

		for (int k = 0; k < 4; k++)
			pthread_create(&threads[k], NULL, worker,
				       (void *)(i * 4 + k));
		/* The other threads get the signals. */
		pthread_sigmask(SIG_BLOCK, &signals, NULL);
		for (int k = 0; k < 4; k++)
			pthread_join(threads[k], NULL);
		pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
	}
	timer_delete(timer);
	print_counts();
	return 0;
}
