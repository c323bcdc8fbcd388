/*
 * allocates [TIME] - two threads allocate and free memory in instrumented functions,
 * for TIME milliseconds of processor time each (1000).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long kept;
static double seconds = 1;

__attribute__((noinline)) static void *get(size_t size)
{
	char *block = malloc(size);

	if (block)
		block[0] = 1;
	return block;
}

__attribute__((noinline)) static void give_back(void *block)
{
	free(block);
}

static double processor_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *allocate(void *unused)
{
	do {
		for (size_t i = 0; i < 1000; i++)
			give_back(get(16 + i * 7 % 3000));
		kept++;
	} while (processor_time() < seconds);
	return unused;
}

int main(int count, char **arguments)
{
	pthread_t threads[2];

	if (count > 1)
		seconds = atof(arguments[1]) / 1000;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, allocate, NULL) != 0)
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%s\n", kept > 0 ? "done" : "nothing");
	return 4;
}
