/*
 * Calls often() and rarely() for SECONDS of processor time after each byte of the standard
 * input, and answers with a byte.  At the end it prints, for each of these spurts: the calls
 * of often(), of rarely() and of work().
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SPURTS_MAX 16

#define OUTSIDE __attribute__((no_instrument_function))

static unsigned long calls[SPURTS_MAX][3];
static int spurt;

OUTSIDE static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

__attribute__((noinline)) static unsigned often(unsigned n)
{
	calls[spurt][0]++;
	for (int i = 0; i < 5; i++)
		n = n * 1664525 + 1013904223;
	return n;
}

__attribute__((noinline)) static unsigned rarely(unsigned n)
{
	calls[spurt][1]++;
	for (int i = 0; i < 300; i++)
		n = n * 1664525 + 1013904223;
	return n;
}

__attribute__((noinline)) static unsigned work(unsigned n)
{
	calls[spurt][2]++;
	for (int i = 0; i < 1000; i++) {
		n = often(n);
		if (i % 20 == 0)
			n = rarely(n);
	}
	return n;
}

__attribute__((noinline)) static unsigned compute(double seconds)
{
	double end = now() + seconds;
	unsigned n = 1;

	while (now() < end)
		n = work(n);
	return n;
}

int main(int count, char **arguments)
{
	double seconds = count > 1 ? atof(arguments[1]) : 0.4;
	unsigned n = 0;
	char byte;

	for (spurt = 0; spurt < SPURTS_MAX; spurt++) {
		if (write(1, "x", 1) != 1 || read(0, &byte, 1) != 1)
			return 1;
		if (byte == '\n')
			break;
		n += compute(seconds);
	}
	for (int i = 0; i < spurt; i++)
		printf("\n%lu %lu %lu", calls[i][0], calls[i][1], calls[i][2]);
	return n == 1;
}
