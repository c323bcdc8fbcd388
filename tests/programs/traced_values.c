/*
 * Calls with arguments and results of several kinds, for a trace.
 */
#include "truth.h"

#include <stdlib.h>

struct point {
	int x, y;
};

static APART int add(int a, int b)
{
	return a + b;
}

static APART double half(double x)
{
	return x / 2;
}

static APART const char *greet(const char *name, struct point at)
{
	return at.x ? "hello" : name;
}

static APART int fact(int n)
{
	return n < 2 ? 1 : n * fact(n - 1);
}

static APART void nothing(void)
{
	add(7, 8);
}

int main(void)
{
	int sum = 0;

	for (int i = 0; i < 3; i++)
		sum += add(i, 10);
	sum += (int)half(5);
	greet("bob \033", (struct point){ 1, 2 });
	nothing();
	return fact(4) + sum > 1000;
}
