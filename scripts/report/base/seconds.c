/* Reads a clock as one number: nanoseconds for sums, seconds for people and waits. */
#include <stdint.h>
#include <time.h>

#include "base/seconds.h"

uint64_t ns_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double seconds_of(clockid_t clock)
{
	return (double)ns_of(clock) / 1e9;
}
