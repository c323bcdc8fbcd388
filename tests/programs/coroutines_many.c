/*
 * A coroutine that takes turns with main so often that every block of a trace begins at
 * another point of a turn.
 */
#include "truth.h"

#include <stdlib.h>
#include <ucontext.h>

#define TURNS 40000

static ucontext_t main_context, coroutine;
static int turns;

static APART void leaf(void)
{
	COUNTED;
}

static APART void step(void)
{
	COUNTED;
	for (int i = 0; i < turns % 5; i++)
		leaf();
	swapcontext(&coroutine, &main_context);
}

static APART void body(void)
{
	COUNTED;
	for (;;)
		step();
}

static APART void turn(void)
{
	COUNTED;
	for (int i = 0; i < turns % 7; i++)
		leaf();
	swapcontext(&main_context, &coroutine);
}

int main(void)
{
	COUNTED;
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = malloc(64 << 10);
	coroutine.uc_stack.ss_size = 64 << 10;
	makecontext(&coroutine, body, 0);
	for (turns = 0; turns < TURNS; turns++)
		turn();
	return 0;
}
