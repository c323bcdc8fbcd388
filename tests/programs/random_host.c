/*
 * Calls hooked functions on one thread while the module of random_calls.py makes its
 * calls in a callback on another.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

static volatile int ends, sink;

static void leaf(int n)
{
	sink += n;
}

static void branch(int n)
{
	leaf(n);
	leaf(n + 1);
}

__attribute__((no_instrument_function)) static void *run(void *unused)
{
	for (int n = 0; !ends; n++)
		branch(n);
	return unused;
}

__attribute__((no_instrument_function)) int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, run, NULL);
	pthread_setname_np(pthread_self(), "renamed");
	ends = 1;
	pthread_join(thread, NULL);
	for (int n = 0; n < 1000; n++)
		branch(n);
	puts("done");
	return 0;
}
