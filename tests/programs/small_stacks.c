/*
 * Threads with the smallest possible stacks.
 *
 * tree:
 *	main 1
 *	worker 100
 *	worker;a 1000
 *	worker;a;b 1000
 */
#include "truth.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

static APART void b(void)
{
	COUNTED;
}

static APART void a(void)
{
	COUNTED;
	b();
}

static void *worker(void *argument)
{
	COUNTED;
	for (int i = 0; i < 10; i++)
		a();
	return argument;
}

int main(void)
{
	pthread_attr_t attributes;
	pthread_t threads[4];

	COUNTED;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
	for (int i = 0; i < 25; i++) {
		for (int k = 0; k < 4; k++)
			pthread_create(&threads[k], &attributes, worker, NULL);
		for (int k = 0; k < 4; k++)
			pthread_join(threads[k], NULL);
	}
	print_counts();
	return 0;
}
