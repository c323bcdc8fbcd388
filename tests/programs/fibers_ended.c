/*
 * Fibers that end by a switch, and never return, as those of Boost do: the next fiber gets the
 * stack of the one before.
 *
 * tree:
 *	main 1
 *	main;leaf 100
 *	fiber 100
 *	fiber;inside 100
 *	fiber;inside;leaf 100
 *	*
 */
#include "switch_stack.h"
#include "truth.h"

#include <stdlib.h>

static void *stacks[2]; /* stack pointers of the suspended fibers */

static APART void leaf(void)
{
	COUNTED;
}

static APART void inside(void)
{
	COUNTED;
	leaf();
	switch_stack(&stacks[1], stacks[0]);
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
	for (volatile int i = 0; i < 100; i++) {
		stacks[1] = new_fiber(memory, size, fiber);
		switch_stack(&stacks[0], stacks[1]);
		switch_stack(&stacks[0], stacks[1]);
		leaf();
	}
	print_counts();
	return 0;
}
