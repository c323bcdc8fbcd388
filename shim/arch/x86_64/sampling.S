/*
 * System calls and returns from signal handlers that sampling/syscall_restart.c
 * recognizes.
 */
#include <cet.h>	/* _CET_ENDBR: a landing pad for indirect branches */

	.text

/*
 * arch_call_with_mask(call, mask): sets the signal mask, then makes a system call.  If
 * a handler runs in between, its return (below) skips the call.
 */
	.p2align 4
	.globl	arch_call_with_mask
	.hidden	arch_call_with_mask
	.type	arch_call_with_mask, @function
arch_call_with_mask:
	.cfi_startproc
	_CET_ENDBR
	push	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	mov	%rdi, %rbx
	mov	$14, %eax		/* SYS_rt_sigprocmask */
	mov	$2, %edi		/* SIG_SETMASK; rsi: the mask */
	xor	%edx, %edx
	mov	$8, %r10d
	syscall
arch_call_begins:
	mov	(%rbx), %rax
	mov	8(%rbx), %rdi
	mov	16(%rbx), %rsi
	mov	24(%rbx), %rdx
	mov	32(%rbx), %r10
	mov	40(%rbx), %r8
	mov	48(%rbx), %r9
	syscall
arch_call_ends:
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size	arch_call_with_mask, .-arch_call_with_mask

/*
 * arch_go_on(context, argument, function): the address to which the handler returns is right
 * below the context, as at the entry of the handler.
 */
	.p2align 4
	.globl	arch_go_on
	.hidden	arch_go_on
	.type	arch_go_on, @function
arch_go_on:
	.cfi_startproc
	_CET_ENDBR
	lea	-8(%rdi), %rsp
	jmp	*%rdx
	.cfi_endproc
	.size	arch_go_on, .-arch_go_on

/*
 * Signal handlers return to these functions, with a ucontext at rsp.  Unwinders recognize
 * the two instructions of libc's function.  These functions end with the same two
 * instructions, and have the same unwind information.  The code before the two
 * instructions leaves marks for sampling/syscall_restart.c.
 */
	.macro	IN_CONTEXT register, low, high
	.cfi_escape 0x10, \register, 3, 0x77, \low, \high
	.endm
	.macro	IN_CONTEXT_NEAR register, low
	.cfi_escape 0x10, \register, 2, 0x77, \low
	.endm

	.macro	RESTORER name, result=0
	.p2align 4
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.cfi_startproc
	.cfi_signal_frame
	.cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 0x06	/* CFA: *(rsp + 160) */
	IN_CONTEXT_NEAR 8, 40
	IN_CONTEXT_NEAR 9, 48
	IN_CONTEXT_NEAR 10, 56
	IN_CONTEXT 11, 0xc0, 0
	IN_CONTEXT 12, 0xc8, 0
	IN_CONTEXT 13, 0xd0, 0
	IN_CONTEXT 14, 0xd8, 0
	IN_CONTEXT 15, 0xe0, 0
	IN_CONTEXT 5, 0xe8, 0
	IN_CONTEXT 4, 0xf0, 0
	IN_CONTEXT 6, 0xf8, 0
	IN_CONTEXT 3, 0x80, 1
	IN_CONTEXT 1, 0x88, 1
	IN_CONTEXT 0, 0x90, 1
	IN_CONTEXT 2, 0x98, 1
	IN_CONTEXT 16, 0xa8, 1
	nop			/* an unwinder looks up the address minus 1 */
\name:
	.if	\result
	mov	168(%rsp), %rax		/* rip */
	lea	arch_call_begins(%rip), %rcx
	cmp	%rcx, %rax
	jb	1f
	lea	arch_call_ends(%rip), %rcx
	cmp	%rcx, %rax
	jae	1f
	mov	%rcx, 168(%rsp)
	movq	$\result, 144(%rsp)	/* rax */
	jmp	2f
1:	cmp	%rax, 152(%rsp)		/* rcx */
	jne	2f
	cmpw	$0x050f, -2(%rax)	/* syscall */
	jne	2f
	movq	$0, 152(%rsp)
2:
	.endif
	mov	$15, %rax		/* SYS_rt_sigreturn */
	syscall
	.cfi_endproc
	.size	\name, .-\name
	.endm

	RESTORER arch_signal_return
	RESTORER arch_signal_return_restarts, -512	/* ERESTARTSYS */
	RESTORER arch_signal_return_fails, -4		/* EINTR */

	.section .note.GNU-stack, "", @progbits
