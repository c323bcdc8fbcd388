/*
 * Threads with small stacks, for whose hooks shim has a stack of its own, and signal handlers
 * that interrupt these hooks and each other.  One of them has an alternate stack.
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

#define ALTERNATE 65536

static APART int leaf(int n)
{
	COUNTED;
	return n;
}

static APART void on_tick(int signal)
{
	COUNTED;
	for (int i = 0; i < 20; i++)
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

QUIET static timer_t begin_timer(int signal, long period_ns)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = signal };
	struct itimerspec spec = { { 0, period_ns }, { 0, period_ns } };
	timer_t timer;

	event._sigev_un._tid = (int)syscall(SYS_gettid);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &spec, NULL);
	return timer;
}

static void *worker(void *memory)
{
	stack_t stack = { .ss_sp = memory, .ss_size = ALTERNATE };
	timer_t timers[2];

	COUNTED;
	sigaltstack(&stack, NULL);
	timers[0] = begin_timer(SIGUSR1, 300000);
	timers[1] = begin_timer(SIGUSR2, 400000);
	down(2);
	timer_delete(timers[0]);
	timer_delete(timers[1]);
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	return NULL;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_tick,
				    .sa_flags = SA_RESTART };
	pthread_attr_t attributes;
	void *memory = malloc(ALTERNATE);
	pthread_t thread;

	COUNTED;
	sigaction(SIGUSR1, &action, NULL);
	action.sa_flags |= SA_ONSTACK;
	sigaction(SIGUSR2, &action, NULL);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 16384);
	for (int i = 0; i < 8; i++) {
		if (pthread_create(&thread, &attributes, worker, memory))
			print_text("no thread\n");
		else
			pthread_join(thread, NULL);
	}
	print_counts();
	return 0;
}
