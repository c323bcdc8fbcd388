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
#include "truth.h"

#include <stdint.h>
#include <stdlib.h>

static void *stacks[2];	/* stack pointers of the suspended fibers */

/* Saves the registers that calls preserve, changes the stack, and restores them.  The
 * saved registers are this many words below a function's address. */
#ifdef __aarch64__
#define SAVED 10
__asm__(".text\n"
	"switch_stack:\n\t"
	"stp x30, x29, [sp, #-16]!\n\tstp x27, x28, [sp, #-16]!\n\t"
	"stp x25, x26, [sp, #-16]!\n\tstp x23, x24, [sp, #-16]!\n\t"
	"stp x21, x22, [sp, #-16]!\n\tstp x19, x20, [sp, #-16]!\n\t"
	"mov x9, sp\n\t"
	"str x9, [x0]\n\t"
	"mov sp, x1\n\t"
	"ldp x19, x20, [sp], #16\n\tldp x21, x22, [sp], #16\n\t"
	"ldp x23, x24, [sp], #16\n\tldp x25, x26, [sp], #16\n\t"
	"ldp x27, x28, [sp], #16\n\tldp x30, x29, [sp], #16\n\t"
	"ret\n");
#else
#define SAVED 6
__asm__(".text\n"
	"switch_stack:\n\t"
	"push %rbp\n\tpush %rbx\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\t"
	"push %r15\n\t"
	"mov %rsp, (%rdi)\n\t"
	"mov %rsi, %rsp\n\t"
	"pop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\t"
	"pop %rbp\n\t"
	"ret\n");
#endif
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
	stacks[1] = top - SAVED;
	for (int i = 0; i < 1000; i++) {
		switch_stack(&stacks[0], stacks[1]);
		leaf();
	}
	switch_stack(&stacks[0], stacks[1]);
	print_counts();
	return 0;
}
