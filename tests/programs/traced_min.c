/*
 * Long and short calls, and nested ones: traced_min CASE.
 */
#include <shim/mark.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define APART __attribute__((noinline))

static volatile long sink;

/* Uses @ms of this process's own time. */
static __attribute__((no_instrument_function)) void spin(long ms)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec -
		       begin.tv_nsec < ms * 1000000);
}

APART void tiny(void)
{
	sink++;
}

APART void late(void)
{
	spin(12);
	tiny();
}

/* Its last part is long. */
APART void middle(void)
{
	tiny();
	late();
	tiny();
}

APART void outer(void)
{
	for (int i = 0; i < 100; i++)
		tiny();
	middle();
}

APART void deeper(long depth)
{
	if (depth == 0)
		spin(20);
	else
		deeper(depth - 1);
	sink++;
}

APART void marked(void)
{
	tiny();
	shim_mark("here");
	tiny();
}

APART void last(void)
{
	tiny();
	raise(SIGKILL);
}

APART void before_last(void)
{
	tiny();
	last();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "mixed") == 0)
		for (int i = 0; i < 5; i++)
			outer();
	if (strcmp(what, "deep") == 0)
		deeper(atol(argv[2]));
	if (strcmp(what, "marked") == 0)
		marked();
	if (strcmp(what, "killed") == 0)
		before_last();
	return 0;
}
