/*
 * Three threads call 300 functions in turn until the end of the input.  With each new filter,
 * each of their functions needs a new answer, so some ask while the next filter is set.
 */
#include "hundreds.h"

#include <pthread.h>
#include <unistd.h>

#define THREADS 3

static volatile int ends;

static void *turn(void *argument)
{
	while (!ends) {
		HUNDRED(CALL, 1)
		HUNDRED(CALL, 2)
		HUNDRED(CALL, 3)
	}
	return argument;
}

int main(void)
{
	pthread_t threads[THREADS];
	char c;

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, turn, NULL);
	if (write(1, "x", 1) == 1 && read(0, &c, 1) >= 0)
		ends = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
