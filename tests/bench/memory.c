/*
 * Measures a malloc and a free, by the number of live blocks: LIVE blocks of 16
 * to 143 bytes, one of which is replaced at random each time.  Prints the
 * nanoseconds of a pair: the minimum of ROUNDS rounds of PAIRS pairs.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define APART __attribute__((noinline))

static void **blocks;
static size_t live;
static uint64_t state = 88172645463325252u;

__attribute__((no_instrument_function)) static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

APART static void *get(size_t size)
{
	char *block = malloc(size);

	*block = 1;
	return block;
}

APART static void put(void *block)
{
	free(block);
}

APART static void replace(size_t pairs)
{
	while (pairs-- > 0) {
		uint64_t random = next();
		size_t i = (random >> 16) % live;

		put(blocks[i]);
		blocks[i] = get(16 + (random & 127));
	}
}

__attribute__((no_instrument_function)) static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
	size_t pairs = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000000;
	int rounds = argc > 3 ? atoi(argv[3]) : 5;
	double best = 0;

	live = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
	blocks = calloc(live, sizeof(*blocks));
	for (size_t i = 0; i < live; i++)
		blocks[i] = get(16 + (next() & 127));
	replace(pairs);
	for (int i = 0; i < rounds; i++) {
		double before = now_ns(), ns;

		replace(pairs);
		ns = (now_ns() - before) / (double)pairs;
		if (i == 0 || ns < best)
			best = ns;
	}
	printf("%.1f\n", best);
	return 0;
}
