/*
 * leaves_by_jump MS: calls functions that return nothing, for MS milliseconds of processor
 * time.  With -O2, their last instruction is a jump to the leave hook.  Prints how often each
 * was called, for tests/whole/budget.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define PLAIN	 __attribute__((no_instrument_function))

static volatile unsigned sink;
static unsigned long count_first, count_second;

static NOINLINE void first(unsigned x)
{
	count_first++;
	sink = x * 3;
}

static NOINLINE void second(unsigned x)
{
	count_second++;
	for (unsigned i = 0; i < 4; i++)
		sink = sink * 5 + x;
}

static PLAIN long spent_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static NOINLINE void work(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		first(i);
		second(i);
	}
}

int main(int count, char **arguments)
{
	long ms = count > 1 ? atol(arguments[1]) : 100;

	while (spent_ms() < ms)
		work(20000);
	printf("process %d calls first %lu\nprocess %d calls second %lu\n",
	       (int)getpid(), count_first, (int)getpid(), count_second);
	return 0;
}
