/*
 * A function that instrumented code chooses while the program is relocated (IFUNC):
 * before the program's threads have thread-local data, and before shim has started.
 *
 * With LIBRARY the function is part of a library; otherwise of the program.
 */
#include <stdio.h>

#ifdef LIBRARY
int resolved(int number);
#else
static int resolved(int number);
#endif

static int chosen(int number)
{
	return number + 2;
}

static __attribute__((noinline)) int choose(int depth)
{
	return depth == 0 ? 0 : 1 + choose(depth - 1);
}

static void *resolve_twice(void)
{
	return choose(1) + choose(3) == 4 ? (void *)chosen : NULL;
}

static int twice(int number) __attribute__((ifunc("resolve_twice")));

int resolved(int number)
{
	return twice(number);
}

#ifndef LIBRARY
int main(void)
{
	printf("%d\n", resolved(1));
	return 3;
}
#endif
