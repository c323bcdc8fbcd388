/*
 * Measures the time that one timer signal takes from the program: sampling
 * bare|shim HZ CLOCK DEPTH SECONDS. bare has a timer and an empty handler of
 * its own; with shim the library samples the program.
 *
 * Works in slices of some microseconds, below DEPTH frames and with some
 * megabytes in the caches; prints how much longer slices with one signal are
 * than those without, by the lower quartile of both.
 *
 * As a preloaded library (BARE_HZ, BARE_CLOCK set) it is that bare timer for
 * any program.
 */
#define _GNU_SOURCE
#include <shim/sampling.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#pragma weak shim_get_sample_counts

#define SLICES	  4000000
#define FOOTPRINT (1u << 20)

static volatile uint64_t signals;

static void empty(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
	signals++;
}

static void start_timer(unsigned hz, int is_wall)
{
	struct sigaction action = { .sa_sigaction = empty,
				    .sa_flags = SA_SIGINFO | SA_RESTART |
						SA_ONSTACK };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = SIGRTMAX };
	struct timespec period = { 0, 1000000000 / hz };
	struct itimerspec often = { period, period };
	timer_t timer;

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	sigaction(SIGRTMAX, &action, NULL);
	timer_create(is_wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID,
		     &event, &timer);
	timer_settime(timer, 0, &often, NULL);
}

__attribute__((constructor)) static void be_preloaded(void)
{
	const char *hz = getenv("BARE_HZ"), *clock = getenv("BARE_CLOCK");

	if (hz && clock)
		start_timer((unsigned)atoi(hz), strcmp(clock, "wall") == 0);
}

static uint64_t count_signals(int is_bare)
{
	struct shim_sample_counts counts;

	if (is_bare)
		return signals;
	shim_get_sample_counts(&counts);
	return counts.signals;
}

static uint64_t now_ns(void)
{
	struct timespec time;

	/* Excludes the time of other programs. */
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint32_t *memory;
static volatile uint32_t sink;

static void work(void)
{
	static uint32_t at = 1;

	for (int i = 0; i < 500; i++) {
		at = at * 1664525 + 1013904223;
		sink += memory[at >> 8 & (FOOTPRINT - 1)];
	}
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static double lower_quarter(uint32_t *times, size_t count)
{
	qsort(times, count, sizeof(*times), by_value);
	return count ? times[count / 4] : 0;
}

static void measure(int is_bare, double seconds)
{
	uint32_t *without = malloc(SLICES * sizeof(uint32_t));
	uint32_t *with = malloc(SLICES * sizeof(uint32_t));
	size_t without_count = 0, with_count = 0;
	uint64_t begin = now_ns(), end = begin + (uint64_t)(seconds * 1e9);
	uint64_t before = count_signals(is_bare), after;

	for (uint64_t now = begin; now < end && without_count < SLICES;) {
		uint64_t next;

		work();
		next = now_ns();
		after = count_signals(is_bare);
		if (after == before)
			without[without_count++] = (uint32_t)(next - now);
		else if (after == before + 1)
			with[with_count++] = (uint32_t)(next - now);
		before = after;
		now = now_ns();
	}
	printf("signals %zu cost %.2f us slice %.2f us\n", with_count,
	       (lower_quarter(with, with_count) -
		lower_quarter(without, without_count)) /
		       1000,
	       lower_quarter(without, without_count) / 1000);
}

static __attribute__((noinline)) void go_down(int depth, int is_bare,
					      double seconds)
{
	if (depth > 0)
		go_down(depth - 1, is_bare, seconds);
	else
		measure(is_bare, seconds);
	sink++;
}

int main(int argc, char **argv)
{
	int is_bare;

	if (argc < 6)
		return 2;
	is_bare = strcmp(argv[1], "bare") == 0;
	if (!is_bare && !shim_get_sample_counts)
		return 2;
	memory = malloc(FOOTPRINT * sizeof(*memory));
	for (uint32_t i = 0; i < FOOTPRINT; i++)
		memory[i] = i;
	if (is_bare)
		start_timer((unsigned)atoi(argv[2]),
			    strcmp(argv[3], "wall") == 0);
	go_down(atoi(argv[4]), is_bare, strtod(argv[5], NULL));
	return 0;
}
