/*
 * Computes for a given time: slower CHANGED-US EXTRA, where EXTRA, "old" or "new", is
 * another function to call.
 */
#include "truth.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

QUIET static void compute(long us)
{
	struct timespec now;
	long long end;

	clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec * 1000000000ll + now.tv_nsec + us * 1000;
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while (now.tv_sec * 1000000000ll + now.tv_nsec < end);
}

static APART void unchanged(void)
{
	compute(2000);
}

static APART void changed(long us)
{
	compute(us);
}

static APART void called(void)
{
}

static APART void old_one(void)
{
	compute(500);
}

static APART void new_one(void)
{
	compute(500);
}

int main(int argc, char **argv)
{
	long us = argc > 1 ? atol(argv[1]) : 0;

	unchanged();
	changed(us);
	for (long i = 0; i < us; i++)
		called();
	if (argc > 2 && !strcmp(argv[2], "new"))
		new_one();
	else
		old_one();
	return 0;
}
