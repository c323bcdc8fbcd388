/*
 * Coroutines are abandoned, and later ones get stacks that overlap those of several of them.
 *
 * tree:
 *	main 1
 *	first 40
 *	first;leaf 40
 *	second 20
 *	second;leaf 20
 */
#include "truth.h"

#include <ucontext.h>

#define PART 24576

static ucontext_t main_context, coroutine;
static char memory[4 * PART] __attribute__((aligned(64)));

static APART void leaf(void)
{
	COUNTED;
}

static APART void first(void)
{
	COUNTED;
	leaf();
	swapcontext(&coroutine, &main_context);
}

static APART void second(void)
{
	COUNTED;
	leaf();
	swapcontext(&coroutine, &main_context);
}

QUIET static void run(size_t from, size_t to, void (*body)(void))
{
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = memory + from;
	coroutine.uc_stack.ss_size = to - from;
	coroutine.uc_link = NULL;
	makecontext(&coroutine, body, 0);
	swapcontext(&main_context, &coroutine);
}

int main(void)
{
	COUNTED;
	for (size_t i = 0; i < 10; i++) {
		run(i * 64, PART, first);
		run(PART + i * 64, 2 * PART, first);
		run(2 * PART, 3 * PART + i * 64, first);
		run(3 * PART + 1024, 4 * PART, first);
		run(PART / 2, 5 * PART / 2, second);
		run(5 * PART / 2, 4 * PART - i * 64, second);
	}
	print_counts();
	return 0;
}
