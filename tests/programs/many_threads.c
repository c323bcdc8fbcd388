/*
 * Threads: ARGUMENTS are the number of threads in all, and the number at a time.  Each
 * waits in `wait_for_others` until all of its group are there.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_barrier_t group;

__attribute__((noinline)) void leaf(void)
{
	__asm__ volatile("");
}

__attribute__((noinline)) void work(void)
{
	for (int i = 0; i < 10; i++)
		leaf();
}

__attribute__((noinline)) void wait_for_others(void)
{
	pthread_barrier_wait(&group);
}

static void *run(void *unused)
{
	work();
	wait_for_others();
	work();
	return unused;
}

int main(int words, char **word)
{
	int threads = words > 1 ? atoi(word[1]) : 100;
	int at_once = words > 2 ? atoi(word[2]) : 10;
	pthread_t *thread = calloc((size_t)at_once, sizeof(*thread));
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	pthread_barrier_init(&group, NULL, (unsigned)at_once);
	for (int done = 0; done < threads; done += at_once) {
		for (int i = 0; i < at_once; i++)
			if (pthread_create(&thread[i], &attributes, run, NULL)) {
				printf("only %d threads\n", i);
				exit(3);
			}
		for (int i = 0; i < at_once; i++)
			pthread_join(thread[i], NULL);
	}
	return 0;
}
