/*
 * A jump out of functions that were inlined into its target ends them.
 *
 * tree:
 *	main 1
 *	main;catcher 3
 *	main;catcher;one 3
 *	main;catcher;one;two 3
 *	main;catcher;leaf 3
 *	main;leaf 1
 */
#include "truth.h"

#include <setjmp.h>

static jmp_buf buffer;

static void leaf(void)
{
	COUNTED;
}

static INLINED void two(void)
{
	COUNTED;
	longjmp(buffer, 1);
}

static INLINED void one(void)
{
	COUNTED;
	two();
}

static APART void catcher(void)
{
	COUNTED;
	if (setjmp(buffer) == 0)
		one();
	leaf();
}

int main(void)
{
	COUNTED;
	for (volatile int i = 0; i < 3; i++)
		catcher();
	leaf();
	print_counts();
	return 0;
}
