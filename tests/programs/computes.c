/* Computes for half a second in four functions, one of which calls itself, on
 * purpose without saying so to anybody: for samples. */
#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void work(unsigned long n)
{
	while (n--)
		sink += n;
}

__attribute__((noinline)) static void again(int depth)
{
	work(20000);
	if (depth)
		again(depth - 1);
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
		again(3);
		other();
	}
	return 0;
}
