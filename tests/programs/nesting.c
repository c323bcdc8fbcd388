/*
 * Calls are counted per path.
 *
 * tree:
 *	main 1
 *	main;a 3
 *	main;a;b 3
 *	main;a;b;c 6
 *	main;a;c 3
 *	main;even 1
 *	main;even;odd 1
 *	main;even;odd;even 1
 *	main;even;odd;even;odd 1
 *	main;even;odd;even;odd;even 1
 *	main;fact 1
 *	main;fact;fact 1
 *	main;fact;fact;fact 1
 *	main;qsort_by;compare 3
 *	main;qsort_by 1
 *	main;tail 2
 *	main;tail;c 2
 */
#include "truth.h"

#include <stdlib.h>

static int odd(int n);

static void c(void)
{
	COUNTED;
}

static void b(void)
{
	COUNTED;
	c();
	c();
}

static void a(void)
{
	COUNTED;
	b();
	c();
}

static int even(int n)
{
	COUNTED;
	return n == 0 ? 1 : odd(n - 1);
}

static int odd(int n)
{
	COUNTED;
	return n == 0 ? 0 : even(n - 1);
}

static long fact(long n)
{
	COUNTED;
	return n < 2 ? 1 : n * fact(n - 1);
}

static int compare(const void *x, const void *y)
{
	COUNTED;
	return *(const int *)x - *(const int *)y;
}

/* Calls back through code that is not instrumented. */
static void qsort_by(int (*by)(const void *, const void *))
{
	int numbers[3] = { 3, 2, 1 };

	COUNTED;
	qsort(numbers, 3, sizeof(*numbers), by);
}

/* At -O2 the last call would be a jump without the leave hook. */
static void tail(void)
{
	COUNTED;
	c();
}

int main(void)
{
	void (*volatile pointer)(void) = tail;

	COUNTED;
	for (int i = 0; i < 3; i++)
		a();
	even(4);
	fact(3);
	qsort_by(compare);
	pointer();
	pointer();
	print_counts();
	return 0;
}
