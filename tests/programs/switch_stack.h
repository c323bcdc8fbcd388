/* Switches stacks without libc, as libraries of fibers do. */
#ifndef SWITCH_STACK_H
#define SWITCH_STACK_H

#include "truth.h"

#include <stddef.h>
#include <stdint.h>

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

/* The stack pointer of a fiber that will begin with @function. */
QUIET static inline void *new_fiber(char *memory, size_t size,
				    void (*function)(void))
{
	uintptr_t top = (uintptr_t)(memory + size - 64) & ~(uintptr_t)63;
	uintptr_t *words = (uintptr_t *)top;

	*--words = 0;
	*--words = (uintptr_t)function;
	return words - SAVED;
}

#endif
