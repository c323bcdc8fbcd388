/*
 * longjmp ends the calls that it skips, and no others.
 *
 * tree:
 *	main 1
 *	main;after 1
 *	main;again 5000
 *	main;again;one 5000
 *	main;again;one;two 5000
 *	main;again;one;two;three 5000
 *	main;again;after 5000
 *	main;same 1
 *	main;same;leaf 4
 *	main;nest 1
 *	main;nest;outer 1
 *	main;nest;outer;inner 1
 *	main;nest;outer;inner;to_inner 1
 *	main;nest;outer;inner;to_outer 1
 *	main;nest;outer;leaf 1
 *	main;nest;leaf 1
 */
#include "truth.h"

#include <setjmp.h>

static jmp_buf buffer, outer_buffer, inner_buffer;

static void leaf(void)
{
	COUNTED;
}

static void after(void)
{
	COUNTED;
}

static void three(void)
{
	COUNTED;
	longjmp(buffer, 1);
}

static void two(void)
{
	COUNTED;
	three();
	print_text("not reached\n");
}

static void one(void)
{
	COUNTED;
	two();
	print_text("not reached\n");
}

static void again(void)
{
	COUNTED;
	if (setjmp(buffer) == 0)
		one();
	after();
}

/* A jump that skips no frame. */
static void same(void)
{
	volatile int n = 0;

	COUNTED;
	setjmp(buffer);
	leaf();
	if (++n < 4)
		_longjmp(buffer, n);
}

static void to_inner(void)
{
	COUNTED;
	longjmp(inner_buffer, 1);
}

static void to_outer(void)
{
	COUNTED;
	longjmp(outer_buffer, 1);
}

static void inner(void)
{
	COUNTED;
	if (setjmp(inner_buffer) == 0)
		to_inner();
	to_outer();
}

static void outer(void)
{
	COUNTED;
	if (_setjmp(outer_buffer) == 0)
		inner();
	leaf();
}

static void nest(void)
{
	COUNTED;
	outer();
	leaf();
}

int main(void)
{
	COUNTED;
	for (volatile int i = 0; i < 5000; i++)
		again();
	same();
	nest();
	after();
	print_counts();
	return 0;
}
