/*
 * Two threads on one processor that wake each other: ping_pong TIMES.  Prints how often
 * they lost the processor.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static int ping[2], pong[2];
static long times;

static void pass_on(int from, int to)
{
	char byte = 0;

	for (long i = 0; i < times; i++)
		if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
			abort();
}

__attribute__((noinline)) void *answer(void *unused)
{
	pass_on(ping[0], pong[1]);
	return unused;
}

__attribute__((noinline)) void ask(void)
{
	pass_on(pong[0], ping[1]);
}

int main(int words, char **word)
{
	struct rusage used;
	pthread_t other;
	cpu_set_t set;

	times = words > 1 ? atol(word[1]) : 1;
	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
	if (pipe(ping) || pipe(pong) ||
	    pthread_create(&other, NULL, answer, NULL))
		return 1;
	ask();
	pthread_join(other, NULL);
	getrusage(RUSAGE_SELF, &used);
	printf("%ld\n", used.ru_nvcsw + used.ru_nivcsw);
	return 0;
}
