/*
 * Functions that end by a call of another one if a condition holds: with clang -Os, one
 * conditional jump.  Before it, they write below the stack pointer what they read behind it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline))

APART long twice(long x)
{
	return 2 * x;
}

#define FUNCTION(name, condition) \
	APART long name(long a, long b) \
	{ \
		volatile long kept[8] = { 1, 2, 3, 4, 5 }; \
\
		kept[7] = b; \
		if (condition) \
			return twice(a); \
		return kept[7] + kept[2] + kept[4]; \
	}

FUNCTION(equal, a == b)
FUNCTION(differs, a != b)
FUNCTION(less, a < b)
FUNCTION(greater, a > b)
FUNCTION(below, (unsigned long)a < (unsigned long)b)
FUNCTION(above, (unsigned long)a > (unsigned long)b)
FUNCTION(least, (unsigned long)a <= (unsigned long)b)
FUNCTION(negative, a - b < 0)
FUNCTION(bit, (a & 4) != 0)
FUNCTION(faster, (double)a > (double)b)
FUNCTION(overflows, __builtin_mul_overflow(a, b << 61, &(long){ 0 }))

int main(int argc, char **argv)
{
	long sum = 0, count = argc > 1 ? atol(argv[1]) : 10000;

	for (long i = 0; i < count; i++) {
		long a = i % 7, b = i % 5;

		sum += equal(a, b) + differs(a, b) + less(a, b) +
		       greater(a, b) + below(a, b) + above(a, b) + least(a, b) +
		       negative(a, b) + bit(a, b) + faster(a, b) +
		       overflows(a, b);
	}
	printf("%ld\n", sum);
	return 0;
}
