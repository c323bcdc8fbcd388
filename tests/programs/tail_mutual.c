/*
 * A million tail calls, back and forth: the stack never holds more than main and one of
 * them.  (Run by events.py.)
 */
#include "truth.h"

#define TAIL __attribute__((musttail))

long even(long n);
long odd(long n);

APART long odd(long n)
{
	if (n == 0)
		return 1;
	TAIL return even(n - 1);
}

APART long even(long n)
{
	if (n == 0)
		return 0;
	TAIL return odd(n - 1);
}

int main(void)
{
	print_text(even(1000000) ? "odd\n" : "even\n");
	return 0;
}
