/*
 * Threads with small stacks set an alternate signal stack by a system call of their own, and
 * their handler calls functions.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 4
#define SIZE	16384

static long calls;

__attribute__((noinline)) static int inner(int a, const char *text)
{
	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	return a + text[0];
}

__attribute__((noinline)) static int outer(const char *text, long number)
{
	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	return inner((int)number, text);
}

__attribute__((no_instrument_function)) static void handle(int signal)
{
	outer("handler", signal);
}

__attribute__((no_instrument_function)) static void *work(void *unused)
{
	stack_t stack = { .ss_sp = malloc(SIZE), .ss_size = SIZE };
	long sum = 0;

	(void)unused;
	if (!stack.ss_sp || syscall(SYS_sigaltstack, &stack, NULL) != 0)
		return NULL;
	for (int i = 0; i < 2000; i++) {
		sum += outer("thread", i);
		if (i % 8 == 0)
			pthread_kill(pthread_self(), SIGUSR1);
		if (i % 32 == 0)
			kill(getpid(), SIGUSR2);
	}
	stack.ss_flags = SS_DISABLE;
	syscall(SYS_sigaltstack, &stack, NULL);
	free(stack.ss_sp);
	return (void *)sum;
}

__attribute__((no_instrument_function)) int main(void)
{
	struct sigaction action = { .sa_handler = handle,
				    .sa_flags = SA_ONSTACK | SA_RESTART };
	pthread_t threads[THREADS];
	pthread_attr_t small;

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, SIZE);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], &small, work, NULL) != 0)
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%d\n", calls >= 2 * THREADS * 2000);
	return 11;
}
