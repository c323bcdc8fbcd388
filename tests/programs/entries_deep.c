/*
 * Computes for half a second in functions that call each other deeply: many calls are open
 * whenever a budget switches a function off.
 */
#include <time.h>

static volatile int sum;

#define NOINLINE __attribute__((noipa))

#define WALK(name, next) \
	static NOINLINE void name(int depth) \
	{ \
		leaf(depth); \
		if (depth > 0) { \
			next(depth - 1); \
			next(depth - 1); \
		} \
		sum++; \
	}

static NOINLINE void leaf(int n)
{
	sum += n;
}

static NOINLINE void again(int depth);

WALK(one, again)
WALK(two, one)
WALK(three, two)
WALK(four, three)
WALK(five, four)
WALK(six, five)
WALK(again, six)

int main(void)
{
	while (clock() < CLOCKS_PER_SEC / 2)
		again(16);
	return 0;
}
