/*
 * computes_briefly processes|threads COUNT - starts processes or threads one after
 * another; each computes for 3 ms.  (Run by sampling.py.)
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long processor_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void *compute(void *unused)
{
	long end = processor_us() + 3000;

	while (processor_us() < end)
		for (volatile int i = 0; i < 1000; i++)
			;
	return unused;
}

static void in_process(void)
{
	pid_t child = fork();

	if (child == 0) {
		compute(NULL);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void in_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, compute, NULL);
	pthread_join(thread, NULL);
}

int main(int count, char **arguments)
{
	int times = count > 2 ? atoi(arguments[2]) : 1;

	for (int i = 0; i < times; i++)
		if (!strcmp(arguments[1], "processes"))
			in_process();
		else
			in_thread();
	return 0;
}
