/*
 * Alternate stacks that are larger than the thread's own stack, with frames near its
 * end.
 *
 * cut: on_tick
 * tree:
 *	main 1
 *	worker 2
 *	worker;down 2
 *	worker;down;down 2
 *	worker;down;down;down 2
 *	worker;down;down;down;leaf 400000
 */
#define _GNU_SOURCE
#include "truth.h"

#include <pthread.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#define ALTERNATE (256 << 10)

static APART void leaf(void)
{
	COUNTED;
}

static APART void on_tick(int signal)
{
	(void)signal;
	COUNTED;
	leaf();
}

static APART void down(int n)
{
	COUNTED;
	if (n > 0)
		down(n - 1);
	else
		for (int i = 0; i < 200000; i++)
			leaf();
}

static void *worker(void *memory)
{
	stack_t stack = { .ss_sp = memory, .ss_size = ALTERNATE };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = SIGUSR1 };
	struct itimerspec spec = { { 0, 50000 }, { 0, 50000 } };
	timer_t timer;

	COUNTED;
	event._sigev_un._tid = (int)syscall(SYS_gettid);
	sigaltstack(&stack, NULL);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &spec, NULL);
	down(2);
	timer_delete(timer);
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	return NULL;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_tick,
				    .sa_flags = SA_ONSTACK | SA_RESTART };
	char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attributes;
	pthread_t thread;

	COUNTED;
	sigaction(SIGUSR1, &action, NULL);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
	for (int i = 0; i < 2; i++) {
		if (pthread_create(&thread, &attributes, worker,
				   i ? memory : memory + (512 << 10)))
			print_text("no thread\n");
		else
			pthread_join(thread, NULL);
	}
	print_counts();
	return 0;
}
