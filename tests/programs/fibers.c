/*
 * A program that switches stacks by itself, without libc.
 *
 * tree:
 *	main 1
 *	main;leaf 1000
 *	main;leaf;leaf2 1000
 *	fiber 1
 *	fiber;inside 1
 *	fiber;inside;leaf 1000
 *	fiber;inside;leaf;leaf2 1000
 *	*
 */
#include "switch_stack.h"
#include "truth.h"

#include <stdlib.h>

static void *stacks[2]; /* stack pointers of the suspended fibers */

static APART void leaf2(void)
{
	COUNTED;
}

static APART void leaf(void)
{
	COUNTED;
	leaf2();
}

static APART void inside(void)
{
	COUNTED;
	for (int i = 0; i < 1000; i++) {
		leaf();
		switch_stack(&stacks[1], stacks[0]);
	}
}

static void fiber(void)
{
	COUNTED;
	inside();
	for (;;)
		switch_stack(&stacks[1], stacks[0]);
}

int main(void)
{
	size_t size = 256 << 10;
	char *memory = malloc(size);

	COUNTED;
	stacks[1] = new_fiber(memory, size, fiber);
	for (int i = 0; i < 1000; i++) {
		switch_stack(&stacks[0], stacks[1]);
		leaf();
	}
	switch_stack(&stacks[0], stacks[1]);
	print_counts();
	return 0;
}
