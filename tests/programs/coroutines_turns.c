/*
 * coroutines_turns [TURNS]: coroutines compute in turns, so each is suspended for most of the
 * time; at the end, all are.
 *
 * tree:
 *	main 1
 *	main;turn 4000
 *	body 20
 *	body;compute 4000
 *	body;compute;leaf 200000
 *	body;yield 4000
 */
#include "truth.h"

#include <stdlib.h>
#include <ucontext.h>

#define COROUTINES 20
#define TURNS	   200
#define STACK	   65536

static ucontext_t main_context, coroutines[COROUTINES];
static int current;
static volatile unsigned long value;

static APART void leaf(void)
{
	COUNTED;
	for (int i = 0; i < 400; i++)
		value = value * 3 + 1;
}

static APART void compute(void)
{
	COUNTED;
	for (int i = 0; i < 50; i++)
		leaf();
}

static APART void yield(void)
{
	COUNTED;
	swapcontext(&coroutines[current], &main_context);
}

static APART void body(void)
{
	COUNTED;
	for (;;) {
		compute();
		yield();
	}
}

static APART void turn(int number)
{
	COUNTED;
	current = number;
	swapcontext(&main_context, &coroutines[number]);
}

int main(int argc, char **argv)
{
	int turns = argc > 1 ? atoi(argv[1]) : TURNS;

	COUNTED;
	for (int i = 0; i < COROUTINES; i++) {
		getcontext(&coroutines[i]);
		coroutines[i].uc_stack.ss_sp = malloc(STACK);
		coroutines[i].uc_stack.ss_size = STACK;
		makecontext(&coroutines[i], body, 0);
	}
	for (int i = 0; i < turns; i++)
		for (int j = 0; j < COROUTINES; j++)
			turn(j);
	print_counts();
	return 0;
}
