/*
 * Computes in a constructor, in main, and in a destructor, the same time each.
 */
#include <time.h>

static volatile double sink;

static __attribute__((noinline)) void compute(void)
{
	struct timespec time;
	double now, end = 0;

	do {
		for (int i = 0; i < 2000; i++)
			sink += i;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
		now = (double)time.tv_sec + (double)time.tv_nsec / 1e9;
		if (end == 0)
			end = now + 0.2;
	} while (now < end);
}

__attribute__((constructor, noinline)) static void construct(void)
{
	compute();
	sink += 1;
}

__attribute__((destructor, noinline)) static void destruct(void)
{
	compute();
	sink += 1;
}

int main(void)
{
	compute();
	return 0;
}
