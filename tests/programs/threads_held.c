/*
 * Each of 200 threads that exist before the first one begins gets its own argument.
 * (A signal holds each on its way to its function.)
 *
 * tree:
 *	main 1
 *	main;create 200
 *	hold 200
 *	begin 200
 *	begin;sum 20100
 */
#define _GNU_SOURCE
#include "truth.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

#define THREADS 200

static pthread_t threads[THREADS];
static pthread_attr_t attributes;
static unsigned held, is_free;

static void hold(int signal)
{
	COUNTED;
	(void)signal;
	__atomic_add_fetch(&held, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&is_free, __ATOMIC_ACQUIRE))
		usleep(1000);
}

static APART void sum(void)
{
	COUNTED;
}

static void *begin(void *argument)
{
	COUNTED;
	for (uintptr_t i = 0; i < (uintptr_t)argument; i++)
		sum();
	return argument;
}

/* Only the new thread does not block the signal. */
static APART void create(uintptr_t number)
{
	COUNTED;
	kill(getpid(), SIGUSR1);
	if (pthread_create(&threads[number], &attributes, begin,
			   (void *)(number + 1)) != 0)
		_exit(2);
	while (__atomic_load_n(&held, __ATOMIC_ACQUIRE) != number + 1)
		usleep(100);
}

int main(void)
{
	struct sigaction action = { .sa_handler = hold };
	void *result;
	sigset_t set;

	COUNTED;
	sigaction(SIGUSR1, &action, NULL);
	sigemptyset(&set);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 256 << 10);
	pthread_attr_setsigmask_np(&attributes, &set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (uintptr_t i = 0; i < THREADS; i++)
		create(i);
	__atomic_store_n(&is_free, 1, __ATOMIC_RELEASE);
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_join(threads[i], &result) != 0 ||
		    (uintptr_t)result != i + 1)
			return 1;
	print_counts();
	return 0;
}
