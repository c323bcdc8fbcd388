/*
 * Threads with small stacks, for whose hooks shim has a stack of its own, and a signal handler
 * that interrupts these hooks.  The handler has no other stack.
 *
 * cut: on_tick
 * tree:
 *	main 1
 *	worker 8
 *	worker;down 8
 *	worker;down;down 8
 *	worker;down;down;down 8
 *	worker;down;down;down;leaf 160000
 */
#define _GNU_SOURCE
#include "truth.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

static APART int leaf(int n)
{
	COUNTED;
	return n;
}

static APART void on_tick(int signal)
{
	COUNTED;
	leaf(signal);
}

static APART void down(int n)
{
	COUNTED;
	if (n > 0)
		down(n - 1);
	else
		for (int i = 0; i < 20000; i++)
			leaf(i);
}

static void *worker(void *argument)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = SIGUSR1 };
	struct itimerspec spec = { { 0, 100000 }, { 0, 100000 } };
	timer_t timer;

	COUNTED;
	event._sigev_un._tid = (int)syscall(SYS_gettid);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &spec, NULL);
	down(2);
	timer_delete(timer);
	return argument;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_tick,
				    .sa_flags = SA_RESTART };
	pthread_attr_t attributes;
	pthread_t thread;

	COUNTED;
	sigaction(SIGUSR1, &action, NULL);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 16384);
	for (int i = 0; i < 8; i++) {
		if (pthread_create(&thread, &attributes, worker, NULL))
			print_text("no thread\n");
		else
			pthread_join(thread, NULL);
	}
	print_counts();
	return 0;
}
