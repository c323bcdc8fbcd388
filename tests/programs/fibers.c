/*
 * A program that switches stacks by itself, unknown to libc.
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
#include "truth.h"

#include <stdint.h>
#include <stdlib.h>

static void *stacks[2];	/* stack pointers of those who wait */

/* Saves the registers that calls keep, changes the stack, and restores them. */
__asm__(".text\n"
	"switch_stack:\n\t"
	"push %rbp\n\tpush %rbx\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\t"
	"push %r15\n\t"
	"mov %rsp, (%rdi)\n\t"
	"mov %rsi, %rsp\n\t"
	"pop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\t"
	"pop %rbp\n\t"
	"ret\n");
QUIET void switch_stack(void **from, void *to);

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
	uintptr_t *top = (uintptr_t *)(memory + size - 64);

	COUNTED;
	top = (uintptr_t *)((uintptr_t)top & ~(uintptr_t)63);
	*--top = 0;
	*--top = (uintptr_t)fiber;
	stacks[1] = top - 6;
	for (int i = 0; i < 1000; i++) {
		switch_stack(&stacks[0], stacks[1]);
		leaf();
	}
	switch_stack(&stacks[0], stacks[1]);
	print_counts();
	return 0;
}
