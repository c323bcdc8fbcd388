/*
 * Computes for a second, and then `threads`: in threads of 3 ms, one after the other; or
 * `phases`: for 3 ms each in turn in with_hooks(), which calls a short function, and in
 * without_hooks().  Prints what processor time that took, in ms: of both parts, or of both
 * functions.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PLAIN __attribute__((no_instrument_function))
#define OWN   __attribute__((noinline))

#define PART_NS 1000000000LL
#define TURN_NS 3000000LL

static volatile unsigned long sum;

PLAIN static long long time_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

PLAIN static void compute(long long ns)
{
	long long end = time_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (time_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 5000; i++)
			sum += (unsigned long)i;
}

OWN void called(void)
{
	sum++;
}

OWN void with_hooks(void)
{
	long long end = time_ns(CLOCK_THREAD_CPUTIME_ID) + TURN_NS;

	while (time_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 2000; i++)
			called();
}

OWN void without_hooks(void)
{
	compute(TURN_NS);
}

static void *run_thread(void *unused)
{
	compute(TURN_NS);
	return unused;
}

static void run_threads(void)
{
	long long begin = time_ns(CLOCK_PROCESS_CPUTIME_ID), between;

	compute(PART_NS);
	between = time_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < PART_NS / TURN_NS; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, run_thread, NULL);
		pthread_join(thread, NULL);
	}
	printf("%lld %lld\n", (between - begin) / 1000000,
	       (time_ns(CLOCK_PROCESS_CPUTIME_ID) - between) / 1000000);
}

static void run_phases(void)
{
	long long with = 0, without = 0;

	while (with + without < 4 * PART_NS) {
		long long begin = time_ns(CLOCK_THREAD_CPUTIME_ID), between;

		with_hooks();
		between = time_ns(CLOCK_THREAD_CPUTIME_ID);
		without_hooks();
		with += between - begin;
		without += time_ns(CLOCK_THREAD_CPUTIME_ID) - between;
	}
	printf("%lld %lld\n", with / 1000000, without / 1000000);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "threads") == 0)
		run_threads();
	else
		run_phases();
	return 0;
}
