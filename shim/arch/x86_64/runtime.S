/*
 * Calls that C cannot express: with a handler for exceptions, and on another stack.
 */
#include <cet.h>	/* _CET_ENDBR: a landing pad for indirect branches */

	.text

/*
 * bool arch_call_guarded(callback, a, b, c, d, e): false if callback(a, ..., e)
 * returned, true if it threw.  The unwinder calls guard_personality
 * (shim/runtime/guard.c), which lets it resume at arch_guard_caught with the exception
 * in rax.
 */
	.p2align 4
	.globl	arch_call_guarded
	.hidden	arch_call_guarded
	.type	arch_call_guarded, @function
	.globl	arch_guard_caught
	.hidden	arch_guard_caught
arch_call_guarded:
	.cfi_startproc
	.cfi_personality 0x1b, guard_personality
	_CET_ENDBR
	push	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	sub	$48, %rsp
	stmxcsr	-8(%rbp)		/* the floating point state */
	fnstenv	-40(%rbp)
	and	$-16, %rsp
	mov	%rdi, %rax
	mov	%rsi, %rdi
	mov	%rdx, %rsi
	mov	%rcx, %rdx
	mov	%r8, %rcx
	mov	%r9, %r8
	call	*%rax
	xor	%eax, %eax
1:	ldmxcsr	-8(%rbp)
	fldenv	-40(%rbp)
	mov	%rbp, %rsp
	pop	%rbp
	.cfi_remember_state
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_restore_state
arch_guard_caught:
	_CET_ENDBR
	mov	%rax, %rdi
	call	guard_caught
	mov	$1, %eax
	jmp	1b
	.cfi_endproc
	.size	arch_call_guarded, .-arch_call_guarded

/*
 * int arch_call_on_stack(int (*call)(void *), void *argument, void *top)
 *
 *     top ->  the stack of the call; the old stack pointer is in rbp
 */
	.p2align 4
	.globl	arch_call_on_stack
	.hidden	arch_call_on_stack
	.type	arch_call_on_stack, @function
arch_call_on_stack:
	.cfi_startproc
	_CET_ENDBR
	push	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	mov	%rdi, %rax
	mov	%rsi, %rdi
	mov	%rdx, %rsp
	and	$-16, %rsp
	call	*%rax
	mov	%rbp, %rsp
	.cfi_def_cfa_register %rsp
	pop	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size	arch_call_on_stack, .-arch_call_on_stack

	.section .note.GNU-stack, "", @progbits
