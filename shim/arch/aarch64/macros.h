/*
 * Macros for all assembly files.
 *
 * Each function begins with a landing pad for indirect branches, and jumps through x16,
 * which such a pad admits.  Return addresses are not signed: the frames of these
 * functions are short-lived and shim's own.
 */
#ifndef SHIM_MACROS_H
#define SHIM_MACROS_H

/* Marks the code as having landing pads for indirect branches (BTI). */
	.section .note.gnu.property, "a"
	.p2align 3
	.word	4			/* size of the name */
	.word	16			/* size of the descriptor */
	.word	5			/* NT_GNU_PROPERTY_TYPE_0 */
	.asciz	"GNU"
	.word	0xc0000000		/* GNU_PROPERTY_AARCH64_FEATURE_1_AND */
	.word	4
	.word	1			/* ..._BTI */
	.word	0

	.section .note.GNU-stack, "", %progbits

	.text

	.macro	FUNCTION name
	.p2align 4
	.globl	\name
	.type	\name, %function
\name:
	.cfi_startproc
	hint	#34			/* bti c */
	.endm

	.macro	END name
	.cfi_endproc
	.size	\name, .-\name
	.endm

/*
 * Around a call that a wrapper makes before it jumps: save the argument registers and
 * the return address.
 *
 *     (sp+16)  x0 to x8
 *     (sp)     x29, x30
 */
	.set	ARGUMENTS_SIZE, 96

	.macro	KEEP_ARGUMENTS
	stp	x29, x30, [sp, #-ARGUMENTS_SIZE]!
	.cfi_adjust_cfa_offset ARGUMENTS_SIZE
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	stp	x2, x3, [sp, #32]
	stp	x4, x5, [sp, #48]
	stp	x6, x7, [sp, #64]
	str	x8, [sp, #80]
	.endm

	.macro	RESTORE_ARGUMENTS
	ldr	x8, [sp, #80]
	ldp	x6, x7, [sp, #64]
	ldp	x4, x5, [sp, #48]
	ldp	x2, x3, [sp, #32]
	ldp	x0, x1, [sp, #16]
	ldp	x29, x30, [sp], #ARGUMENTS_SIZE
	.cfi_adjust_cfa_offset -ARGUMENTS_SIZE
	.cfi_restore x29
	.cfi_restore x30
	.endm

/* A frame of two registers, for a call that is not a tail call. */
	.macro	BEGIN_FRAME
	stp	x29, x30, [sp, #-16]!
	.cfi_adjust_cfa_offset 16
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	mov	x29, sp
	.endm

	.macro	END_FRAME
	ldp	x29, x30, [sp], #16
	.cfi_adjust_cfa_offset -16
	.cfi_restore x29
	.cfi_restore x30
	.endm

	.macro	LOAD register, symbol
	adrp	\register, \symbol
	ldr	\register, [\register, #:lo12:\symbol]
	.endm

/* Loads the thread into \register; changes x9. */
	.macro	LOAD_THREAD register
	mrs	\register, tpidr_el0
	adrp	x9, :gottprel:thread_current
	ldr	x9, [x9, #:gottprel_lo12:thread_current]
	ldr	\register, [\register, x9]
	.endm

#endif
