/*
 * The stack of a coroutine may lie inside another stack.
 *
 * tree:
 *	main 1
 *	main;inside 1
 *	main;inside;leaf 100
 *	on_local 1
 *	on_local;leaf 100
 */
#include "truth.h"

#include <ucontext.h>

static ucontext_t home, local;

static APART void leaf(void)
{
	COUNTED;
}

static void on_local(void)
{
	COUNTED;
	for (int i = 0; i < 100; i++) {
		leaf();
		swapcontext(&local, &home);
	}
}

/* The coroutine's stack is a part of this function's frame. */
static APART void inside(void)
{
	char stack[65536];

	COUNTED;
	getcontext(&local);
	local.uc_stack.ss_sp = stack;
	local.uc_stack.ss_size = sizeof(stack);
	local.uc_link = &home;
	makecontext(&local, on_local, 0);
	for (int i = 0; i < 100; i++) {
		swapcontext(&home, &local);
		leaf();
	}
	swapcontext(&home, &local);
}

int main(void)
{
	COUNTED;
	inside();
	print_counts();
	return 0;
}
