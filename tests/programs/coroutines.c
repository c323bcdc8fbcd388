/*
 * Every coroutine has calls of its own.
 *
 * tree:
 *	main 1
 *	main;leaf 1
 *	main;run 1
 *	main;run;resume 1000
 *	body 3
 *	body;step 1000
 *	body;step;yield 1000
 *	body;step;yield;leaf 1000
 *	main;generations 1
 *	main;generations;leaf 50
 *	short_body 50
 *	short_body;leaf 50
 */
#include "truth.h"

#include <stdlib.h>
#include <ucontext.h>

#define STACK 65536

static ucontext_t home, coroutine[3];
static int now;

static APART void leaf(void)
{
	COUNTED;
}

static APART void yield(void)
{
	COUNTED;
	leaf();
	swapcontext(&coroutine[now], &home);
}

static APART void step(void)
{
	COUNTED;
	yield();
}

static void body(int count)
{
	COUNTED;
	for (int i = 0; i < count; i++)
		step();
	/* uc_link continues the main context. */
}

static APART void resume(int which)
{
	COUNTED;
	now = which;
	swapcontext(&home, &coroutine[which]);
}

static APART void run(void)
{
	static char stacks[3][STACK];
	static const int counts[3] = { 500, 300, 200 };
	int left[3];

	COUNTED;
	for (int i = 0; i < 3; i++) {
		getcontext(&coroutine[i]);
		coroutine[i].uc_stack.ss_sp = stacks[i];
		coroutine[i].uc_stack.ss_size = STACK;
		coroutine[i].uc_link = &home;
		makecontext(&coroutine[i], (void (*)(void))body, 1, counts[i]);
		left[i] = counts[i];
	}
	for (int i = 0; left[0] + left[1] + left[2] > 0; i = (i + 1) % 3)
		if (left[i] > 0) {
			left[i]--;
			resume(i);
		}
	/* The last switch into each coroutine, which returns through uc_link. */
	for (int i = 0; i < 3; i++)
		swapcontext(&home, &coroutine[i]);
}

static void short_body(void)
{
	COUNTED;
	leaf();
}

/* Coroutines that use the same stack one after another. */
static APART void generations(void)
{
	char *stack = malloc(STACK);

	COUNTED;
	for (int i = 0; i < 50; i++) {
		getcontext(&coroutine[0]);
		coroutine[0].uc_stack.ss_sp = stack;
		coroutine[0].uc_stack.ss_size = STACK;
		coroutine[0].uc_link = &home;
		makecontext(&coroutine[0], short_body, 0);
		swapcontext(&home, &coroutine[0]);
		leaf();
	}
	free(stack);
}

int main(void)
{
	COUNTED;
	run();
	generations();
	leaf();
	print_counts();
	return 0;
}
