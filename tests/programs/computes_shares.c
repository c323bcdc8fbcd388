/*
 * computes_shares TIME_MS - two functions share the time three to one; both end their
 * own calls in a cycle.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <time.h>

static volatile unsigned long work;

__attribute__((noinline)) static void compute(int rounds)
{
	for (int i = 0; i < rounds * 100000; i++)
		work += (unsigned long)i;
}

__attribute__((noinline)) static void shorter(int depth);

__attribute__((noinline)) static void longer(int depth)
{
	compute(3);
	if (depth > 0)
		shorter(depth - 1);
	work++;
}

static void shorter(int depth)
{
	compute(1);
	if (depth > 0)
		longer(depth - 1);
	work++;
}

int main(int count, char **arguments)
{
	int time_ms = count > 1 ? atoi(arguments[1]) : 100;
	clock_t end = clock() + time_ms * (CLOCKS_PER_SEC / 1000);

	while (clock() < end)
		longer(3);
	return 0;
}
