/*
 * ends_threads HOW - ends while seven other threads are in their calls.
 */
#include "truth.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

static pthread_barrier_t barrier;

static APART void leaf(void)
{
	COUNTED;
}

static APART void wait_for_the_end(void)
{
	COUNTED;
	leaf();
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
}

static void *worker(void *argument)
{
	COUNTED;
	wait_for_the_end();
	return argument;
}

int main(int count, char **arguments)
{
	pthread_t thread;

	COUNTED;
	(void)count;
	pthread_barrier_init(&barrier, NULL, 8);
	for (int i = 0; i < 7; i++)
		pthread_create(&thread, NULL, worker, NULL);
	pthread_barrier_wait(&barrier);
	print_counts();
	if (arguments[1][0] == 'k')
		raise(SIGKILL);
	_exit(0);
}
