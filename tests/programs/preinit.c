/*
 * Functions that the loader calls before any constructor, even libc's.  The first
 * argument is their number of calls; they read it from where the kernel put it.
 */
#include <stdio.h>
#include <stdlib.h>

static unsigned long calls;

static __attribute__((noinline)) void leaf(void)
{
	calls++;
}

static void begin(int count, char **arguments, char **environment)
{
	(void)environment;
	for (long i = count > 1 ? atol(arguments[1]) : 0; i > 0; i--)
		leaf();
}

__attribute__((section(".preinit_array"), used)) static void (*const at)(
	int count, char **arguments, char **environment) = begin;

int main(void)
{
	leaf();
	printf("%lu\n", calls);
	return 3;
}
