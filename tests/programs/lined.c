/*
 * Spends its time in few lines, most of them inlined: `mix` in `twice`, which is in
 * `inlining`, and in `recurse`, which calls itself.  tests/whole/lines.py finds the
 * lines by their marks.
 */
#include <stdio.h>
#include <stdlib.h>

static inline __attribute__((always_inline)) unsigned mix(unsigned x)
{
	for (int i = 0; i < 60; i++)
		x = (x * 2654435761u) ^ (x >> 15); /* MIX */
	return x;
}

static inline __attribute__((always_inline)) unsigned twice(unsigned x)
{
	return mix(mix(x) + 1); /* TWICE */
}

__attribute__((noinline)) unsigned inlining(unsigned rounds)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < rounds; i++)
		sum += twice(i); /* INLINING */
	return sum;
}

__attribute__((noinline)) unsigned recurse(unsigned depth, unsigned rounds)
{
	unsigned sum = 0;

	if (depth > 0)
		return recurse(depth - 1, rounds) + 1; /* RECURSE */
	for (unsigned i = 0; i < rounds; i++)
		sum += mix(i); /* DEEPEST */
	return sum;
}

__attribute__((noinline)) unsigned idle(unsigned x)
{
	return x ^ 1;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
	unsigned sum = inlining(rounds); /* MAIN */

	sum += recurse(3, rounds);
	printf("%u\n", idle(sum));
	return 0;
}
