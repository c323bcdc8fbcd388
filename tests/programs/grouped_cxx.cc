/*
 * Members, overloads and functions with the same name in two places, with exceptions:
 * prints like grouped.c how often each was called.
 */
#include "truth.h"

static volatile long sink;

namespace shapes {

struct Point {
	int x;
	APART int move(int by);
};

static unsigned long moves[3];

int Point::move(int by)
{
	__atomic_fetch_add(&moves[by], 1, __ATOMIC_RELAXED);
	sink = by;
	x += by;
	if (by == 2)
		throw by;
	sink = by + x;
	return x;
}

} // namespace shapes

static unsigned long ints[2], longs[2];

APART static int overloaded(int kind)
{
	ints[kind]++;
	sink = kind;
	return (int)(sink = kind + 1);
}

APART static int overloaded(long kind)
{
	longs[kind]++;
	sink = kind;
	return (int)(sink = kind + 1);
}

QUIET static void print(const char *name, long value, unsigned long calls)
{
	char line[100];

	snprintf(line, sizeof(line), "by %s %ld %lu\n", name, value, calls);
	print_text(line);
}

int main()
{
	static shapes::Point points[2];

	for (int i = 0; i < 300; i++) {
		try {
			points[i % 2].move(i % 3);
		} catch (int) {
			sink++;
		}
		overloaded(i % 2);
		overloaded((long)(i % 3 == 0));
	}
	for (int i = 0; i < 3; i++)
		print("move", i, shapes::moves[i]);
	for (int i = 0; i < 2; i++)
		print("overloaded", i, ints[i] + longs[i]);
	char line[100];
	for (int i = 0; i < 2; i++) {
		snprintf(line, sizeof(line), "by this %p 150\n",
			 (void *)&points[i]);
		print_text(line);
	}
	return 0;
}
