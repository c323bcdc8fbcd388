/* Computes for half a second; one function calls itself, directly and through another.
 * It prints nothing: for samples, and for the effect of recursion on totals. */
#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void work(unsigned long n)
{
	while (n--)
		sink += n;
}

__attribute__((noinline)) static void again(int depth);

__attribute__((noinline)) static void once_more(int depth)
{
	again(depth);
	sink++;
}

__attribute__((noinline)) static void again(int depth)
{
	work(20000);
	if (depth % 2)
		again(depth - 1);
	else if (depth)
		once_more(depth - 1);
	sink++;
}

__attribute__((noinline)) static void other(void)
{
	work(30000);
	sink++;
}

int main(void)
{
	while (clock() < CLOCKS_PER_SEC / 2) {
		again(4);
		other();
	}
	return 0;
}
