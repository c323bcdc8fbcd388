/*
 * Two functions that do the same work, 500,000 calls of about a microsecond each, without
 * system calls, which would draw time to themselves.  Between them the program says
 * "half" and waits for a line.
 *
 *     ticked          as it is
 *     ticked child    a child does that; its parent ends at once
 *     ticked again    becomes `ticked` by exec
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLAIN	 __attribute__((no_instrument_function))
#define FUNCTION __attribute__((noinline))

static volatile unsigned result;

static FUNCTION void first(void)
{
	for (int i = 0; i < 1000; i++)
		result += (unsigned)i;
}

static FUNCTION void second(void)
{
	for (int i = 0; i < 1000; i++)
		result ^= (unsigned)i;
}

static PLAIN void repeat(void (*function)(void))
{
	for (int i = 0; i < 500000; i++)
		function();
}

int main(int argc, char **argv)
{
	char byte;

	if (argc > 1 && !strcmp(argv[1], "again"))
		execl(argv[0], argv[0], NULL);
	if (argc > 1 && !strcmp(argv[1], "child") && fork() != 0)
		return 0;
	repeat(first);
	puts("half");
	fflush(stdout);
	if (read(0, &byte, 1) < 0)
		return 1;
	repeat(second);
	puts("done");
	return 0;
}
