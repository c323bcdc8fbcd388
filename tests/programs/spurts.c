/*
 * Computes for SECONDS of processor time after each byte of the standard input, and answers
 * with a byte.  At the end it prints how often it has called leaf(), which allocates memory
 * if there is a second argument.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static unsigned long calls;
static int allocates;

__attribute__((no_instrument_function)) static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

__attribute__((noinline)) static unsigned leaf(unsigned n)
{
	calls++;
	if (allocates)
		free(__builtin_memset(malloc(300), 0, 1));
	for (int i = 0; i < 30; i++)
		n = n * 1664525 + 1013904223;
	return n;
}

__attribute__((noinline)) static unsigned compute(double seconds)
{
	double end = now() + seconds;
	unsigned n = 1;

	while (now() < end)
		for (int i = 0; i < 1000; i++)
			n = leaf(n);
	return n;
}

int main(int count, char **arguments)
{
	double seconds = count > 1 ? atof(arguments[1]) : 0.4;
	unsigned n = 0;
	char byte;

	allocates = count > 2;
	do {
		if (write(1, "x", 1) != 1 || read(0, &byte, 1) != 1)
			return 1;
		n += compute(byte == '\n' ? 0 : seconds);
	} while (byte != '\n');
	printf("%lu\n", calls);
	return n == 1;
}
