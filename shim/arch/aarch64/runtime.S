/*
 * Calls that C cannot express: with a handler for exceptions, and on another stack.
 */
#include "macros.inc"

/*
 * bool arch_call_guarded(callback, a, b, c, d, e): false if callback(a, ..., e)
 * returned, true if it threw.  The unwinder calls guard_personality
 * (shim/runtime/guard.c), which lets it resume at arch_guard_caught with the exception
 * in x0.
 *
 *     (sp+16)  FPCR, FPSR: the floating point state
 *     (sp)     x29, x30
 */
	.hidden	arch_call_guarded
	.globl	arch_guard_caught
	.hidden	arch_guard_caught
	FUNCTION arch_call_guarded
	.cfi_personality 0x1b, guard_personality
	stp	x29, x30, [sp, #-32]!
	.cfi_adjust_cfa_offset 32
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	mov	x29, sp
	mrs	x9, fpcr
	mrs	x10, fpsr
	stp	x9, x10, [sp, #16]
	mov	x9, x0
	mov	x0, x1
	mov	x1, x2
	mov	x2, x3
	mov	x3, x4
	mov	x4, x5
	blr	x9
	mov	w0, #0
1:	ldp	x9, x10, [sp, #16]
	msr	fpcr, x9
	msr	fpsr, x10
	.cfi_remember_state
	ldp	x29, x30, [sp], #32
	.cfi_adjust_cfa_offset -32
	.cfi_restore x29
	.cfi_restore x30
	ret
	.cfi_restore_state
arch_guard_caught:
	hint	#36			/* bti j */
	bl	guard_caught
	mov	w0, #1
	b	1b
	END	arch_call_guarded

/*
 * int arch_call_on_stack(int (*call)(void *), void *argument, void *top)
 *
 *     top ->  the stack of the call; the old stack pointer is in x29
 */
	.hidden	arch_call_on_stack
	FUNCTION arch_call_on_stack
	BEGIN_FRAME
	.cfi_def_cfa_register x29
	mov	x9, x0
	mov	x0, x1
	and	x2, x2, #-16
	mov	sp, x2
	blr	x9
	mov	sp, x29
	.cfi_def_cfa_register sp
	END_FRAME
	ret
	END	arch_call_on_stack
