/*
 * calls_short CALLS THREADS - threads, and then a child process, call functions that are too
 * short to be timed: often, and ten times as often.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned kept;

__attribute__((noinline)) static unsigned shorter(unsigned x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3 + 1;
}

__attribute__((noinline)) static unsigned longer(unsigned x)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < 10; i++)
		sum += shorter(x + i);
	for (unsigned i = 0; i < 300; i++)
		kept = i;
	return sum;
}

static void *run(void *count)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < *(unsigned *)count; i++)
		sum += longer(i);
	kept = sum;
	return count;
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 1000000;
	int thread_count = argc > 2 ? atoi(argv[2]) : 2, status;
	pthread_t threads[4];

	for (int i = 0; i < thread_count; i++)
		pthread_create(&threads[i], NULL, run, &count);
	for (int i = 0; i < thread_count; i++)
		pthread_join(threads[i], NULL);
	if (fork() == 0)
		run(&count);
	else
		wait(&status);
	puts("done");
	return 0;
}
