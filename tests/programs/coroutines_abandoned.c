/*
 * A coroutine that is never resumed does not affect the next one on its stack.
 *
 * tree:
 *	main 1
 *	main;round_trip 100
 *	main;round_trip;leaf 100
 *	body 100
 *	body;deep 100
 *	body;deep;leave 100
 *	*
 */
#include "truth.h"

#include <ucontext.h>

static ucontext_t home, coroutine;
static char stack[65536];

static APART void leaf(void)
{
	COUNTED;
}

static APART void leave(void)
{
	COUNTED;
	setcontext(&home);
}

static APART void deep(void)
{
	COUNTED;
	leave();
}

static void body(void)
{
	COUNTED;
	deep();
}

static APART void round_trip(void)
{
	volatile int back = 0;

	COUNTED;
	getcontext(&home);
	if (!back) {
		back = 1;
		getcontext(&coroutine);
		coroutine.uc_stack.ss_sp = stack;
		coroutine.uc_stack.ss_size = sizeof(stack);
		coroutine.uc_link = NULL;
		makecontext(&coroutine, body, 0);
		setcontext(&coroutine);
	}
	leaf();
}

int main(void)
{
	COUNTED;
	for (volatile int i = 0; i < 100; i++)
		round_trip();
	print_counts();
	return 0;
}
