/*
 * Sleeps, and then computes for most of the time between two ticks of the kernel, again and
 * again: on a machine that is idle, no tick finds it running.  Prints the milliseconds of
 * processor time that compute() took.
 */
#include <stdio.h>
#include <time.h>

#define ROUNDS 150

static volatile unsigned sum;

static long long clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void sleep_ns(long long ns)
{
	struct timespec pause = { 0, (long)ns };

	nanosleep(&pause, NULL);
}

/* A coarse clock has the time of the last tick. */
static long long a_tick_ns(void)
{
	long long before = clock_ns(CLOCK_MONOTONIC_COARSE), now;

	do
		now = clock_ns(CLOCK_MONOTONIC_COARSE);
	while (now == before);
	return now;
}

__attribute__((noinline)) void compute(long long end_ns)
{
	while (clock_ns(CLOCK_MONOTONIC) < end_ns)
		for (int i = 0; i < 1000; i++)
			sum++;
}

int main(void)
{
	struct timespec tick;
	long long base = a_tick_ns(), before;

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	sleep_ns(50000000);
	before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (int i = 0; i < ROUNDS; i++) {
		long long passed = clock_ns(CLOCK_MONOTONIC) - base;
		long long last = base + passed / tick.tv_nsec * tick.tv_nsec;

		sleep_ns(last + tick.tv_nsec * 5 / 4 -
			 clock_ns(CLOCK_MONOTONIC));
		compute(last + tick.tv_nsec * 7 / 4);
	}
	printf("%lld\n",
	       (clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / 1000000);
	return 0;
}
