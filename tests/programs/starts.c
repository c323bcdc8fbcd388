/*
 * Starts the profilers in STARTS before main, and those in STARTS_LATE at the end.
 * With COMPUTES, main first computes for 0.2 s of processor time.  (Run by authors.py.)
 */
#include <shim/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma weak shim_profiler_load
#define PLAIN __attribute__((no_instrument_function))

void *volatile kept;

static __attribute__((noinline)) void leaf(void)
{
	free(kept);
	kept = malloc(100);
}

static PLAIN void start(const char *names)
{
	char copy[4096], *rest = copy, *name;

	snprintf(copy, sizeof(copy), "%s", names);
	while ((name = strsep(&rest, " ")))
		printf("%s %08x\n", name,
		       (unsigned)shim_profiler_load(name, NULL, 0));
	memset(copy, 'x', sizeof(copy));
	fflush(stdout);
}

__attribute__((constructor)) static PLAIN void begin(void)
{
	leaf();
	if (getenv("STARTS"))
		start(getenv("STARTS"));
}

int main(void)
{
	while (getenv("COMPUTES") && clock() < CLOCKS_PER_SEC / 5)
		;
	for (int i = 0; i < 1000; i++)
		leaf();
	if (getenv("STARTS_LATE"))
		start(getenv("STARTS_LATE"));
	return 0;
}
