/*
 * A thread calls a function at 700 depths that are 1 MiB of stack apart, so that each call
 * reaches a part of the stack that no call has reached.  A handler interrupts all the time
 * and calls a function there.  Prints how often each function ran.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

#define DEPTH 700

static volatile unsigned long handled;

__attribute__((noinline)) void inner(void)
{
	handled++;
}

__attribute__((noinline)) void handler(int signal)
{
	(void)signal;
	inner();
}

void deeper(int depth);

/* Not recorded: its frame lies between those of two calls. */
__attribute__((noinline, no_instrument_function)) static void step(int depth)
{
	volatile char room[1 << 20];

	room[0] = 0;
	deeper(depth);
	room[0] += 1;
}

__attribute__((noinline)) void deeper(int depth)
{
	if (depth > 1)
		step(depth - 1);
}

static void *work(void *argument)
{
	sigset_t alarm;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
	deeper(DEPTH);
	return argument;
}

int main(void)
{
	struct itimerval often = { { 0, 20 }, { 0, 20 } }, never = { 0 };
	struct sigaction action = { .sa_handler = handler };
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t alarm;

	sigaction(SIGALRM, &action, NULL);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, NULL);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, (size_t)(DEPTH + 10) << 20);
	if (pthread_create(&thread, &attributes, work, NULL) != 0)
		return 1;
	setitimer(ITIMER_REAL, &often, NULL);
	pthread_join(thread, NULL);
	setitimer(ITIMER_REAL, &never, NULL);
	printf("calls handler %lu\ncalls inner %lu\ncalls deeper %d\n", handled,
	       handled, DEPTH);
	return 0;
}
