/* Macros for dispatch.S and edge.S. */
#ifndef SHIM_ARGUMENTS_H
#define SHIM_ARGUMENTS_H

/*
 * Around a call that a wrapper makes before it jumps: save the argument registers and
 * align the stack.
 */
	.set	ARGUMENTS_SIZE, 56

	.macro	KEEP_ARGUMENTS
	.irp	register, rdi, rsi, rdx, rcx, r8, r9
	push	%\register
	.cfi_adjust_cfa_offset 8
	.endr
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	.endm

	.macro	RESTORE_ARGUMENTS
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	.irp	register, r9, r8, rcx, rdx, rsi, rdi
	pop	%\register
	.cfi_adjust_cfa_offset -8
	.endr
	.endm

#endif
