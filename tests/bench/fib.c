/* Recursive Fibonacci numbers: deep recursion of a single tiny function.
 * fib(N) makes 2 * fib(N + 1) - 1 calls.
 * usage: fib [N] */
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) unsigned long fib(unsigned n)
{
	if (n < 2)
		return n;
	unsigned long p = fib(n - 1), q = fib(n - 2);
	/* This keeps the compiler from turning the second call into a loop. */
	__asm__ volatile("" : "+r"(q));
	return p + q;
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 38;
	printf("%lu\n", fib(n));
	return 0;
}
