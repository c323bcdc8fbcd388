/* Calls a short function many times and sleeps, until it is killed. */
#include "truth.h"

#include <time.h>

static volatile unsigned sum;

static APART void leaf(void)
{
	sum++;
}

int main(void)
{
	static const struct timespec nap = { .tv_nsec = 2000000 };

	puts("begun");
	fflush(stdout);
	for (;;) {
		for (int i = 0; i < 100000; i++)
			leaf();
		nanosleep(&nap, NULL);
	}
}
