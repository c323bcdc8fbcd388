/*
 * Entries of functions whose ends have no mark (shim/sources/returns.h).  An entry is
 * patched to jump to its thunk, which jumps to shim_entry:
 *
 *     r11     the thunk: the function is at 16(r11), the code after the entry at 24(r11)
 *     (rsp)   the function's return address; rsp is its slot
 *
 * The return address is copied to the slot's place in the mirror (returns.h), and
 * arch_returned takes its place in the slot.  A call instruction stores it, so the
 * processor predicts the function's return to arch_returned; and arch_returned ends
 * with a return, which is predicted to be that of the function's caller.
 *
 * Hooks get (function, site, frame), and use general registers only.  The frame is a word
 * below the slot, and the word below the frame is the return address that a call of the
 * hook would have: the code after the entry; when the function has returned, the call
 * site.  No compiler expects r11 to be preserved at the start of a function.  All other
 * registers are.
 */
#include "shim/mark_hooks.inc"

#include <cet.h>	/* _CET_ENDBR: a landing pad for indirect branches */

	.text

	.macro	RESTORE_ENTRY
	MARK_POP	r11, r10, r9, r8, rdi, rsi, rdx, rcx
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	MARK_POP	rax
	.endm

	.p2align 6
	.globl	shim_entry
	.hidden	shim_entry
	.type	shim_entry, @function
shim_entry:
	.cfi_startproc
	_CET_ENDBR
	MARK_PUSH rax
	push	24(%r11)
	.cfi_adjust_cfa_offset 8
	MARK_PUSH rcx, rdx, rsi, rdi, r8, r9, r10, r11
	mov	returns_window@gottpoff(%rip), %rax
	mov	80(%rsp), %rsi
	lea	80(%rsp), %rcx
	mov	16(%r11), %rdi
	lea	72(%rsp), %rdx
	mov	%rcx, %r8
	xor	%fs:(%rax), %r8
	shr	$20, %r8
	jnz	4f			/* another part of the stack */
1:	lea	arch_returned(%rip), %rax
	MIRROR	rcx
	cmp	%rax, %rsi
	je	3f
	mov	%rsi, (%rcx)
	mov	%rdi, 8(%rcx)
	call	*returns_hooks(%rip)
	.cfi_remember_state
	RESTORE_ENTRY

	/* rsp is the slot, and r11 the thunk.  The call is written in bytes, because
	 * unwinders look at the byte before a return address, and must find the rule of
	 * arch_returned there. */
	.globl	shim_entry_replace
	.hidden	shim_entry_replace
shim_entry_replace:
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	.byte	0xe8			/* call 5f */
	.cfi_adjust_cfa_offset 8
	CFI_RETURN_IN_MIRROR
	.long	5f - arch_returned

/* A function has returned: rsp is above its slot, rax, rdx and vector registers have its
 * result.  (Some functions of clang's preserve other registers, too.) */
	.globl	arch_returned
	.hidden	arch_returned
arch_returned:
	jmp	*returns_leave(%rip)
	.globl	shim_returned
	.hidden	shim_returned
shim_returned:
	_CET_ENDBR
	lea	-8(%rsp), %rsp
	.cfi_adjust_cfa_offset 8
	MARK_PUSH rax
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	MARK_PUSH rdx, rcx, rsi, rdi, r8, r9, r10
	lea	72(%rsp), %rcx
	lea	64(%rsp), %rdx
	MIRROR	rcx
	mov	(%rcx), %rsi
	mov	8(%rcx), %rdi
	mov	%rsi, 72(%rsp)
	mov	%rsi, 56(%rsp)
	call	*returns_hooks+8(%rip)
	MARK_POP	r10, r9, r8, rdi, rsi, rcx, rdx
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	MARK_POP	rax
	ret

5:	.cfi_def_cfa_offset 8
	.cfi_offset %rip, -8
	.cfi_restore %rsp
	notrack	jmp *24(%r11)
	.cfi_restore_state

	/* A tail call: the function that has jumped here ends, and this function takes
	 * over its slot.  So a chain of tail calls needs no memory. */
3:	mov	(%rcx), %rsi
	mov	8(%rcx), %r8
	mov	%rdi, 8(%rcx)
	mov	%r8, %rdi
	mov	%rsi, 64(%rsp)
	call	*returns_hooks+16(%rip)
	mov	(%rsp), %r11
	lea	80(%rsp), %rcx
	lea	72(%rsp), %rdx
	MIRROR	rcx
	mov	24(%r11), %rax
	mov	(%rcx), %rsi
	mov	%rax, 64(%rsp)
	mov	16(%r11), %rdi
	call	*returns_hooks(%rip)
2:	.cfi_remember_state
	RESTORE_ENTRY
	notrack	jmp *24(%r11)
	.cfi_restore_state

4:	mov	%rcx, %rdi
	call	returns_open
	mov	(%rsp), %r11
	mov	80(%rsp), %rsi
	mov	16(%r11), %rdi
	lea	80(%rsp), %rcx
	lea	72(%rsp), %rdx
	cmp	$1, %eax
	je	1b
	jb	2b			/* not recorded, and counted */
	call	*returns_hooks(%rip)	/* without its end */
	jmp	2b
	.cfi_endproc
	.size	shim_entry, .-shim_entry

/* The hook if no profiler wants calls. */
	.p2align 4
	.globl	returns_nothing
	.hidden	returns_nothing
	.type	returns_nothing, @function
returns_nothing:
	.cfi_startproc
	_CET_ENDBR
	ret
	.cfi_endproc
	.size	returns_nothing, .-returns_nothing

/*
 * The hooks for all other plans: they keep the vector registers that may have arguments or
 * results, because hooks of modules may use them, and call
 * returns_run(function, site, frame, event).
 */
	.macro	VECTORS instruction, register, step, store
	.irp	number, 0, 1, 2, 3, 4, 5, 6, 7
	.if	\store
	\instruction	%\register\number, \step*\number(%rsp)
	.else
	\instruction	\step*\number(%rsp), %\register\number
	.endif
	.endr
	.endm

	.macro	PLAN name, event
	.p2align 4
	.globl	\name
	.hidden	\name
	.type	\name, @function
\name:
	.cfi_startproc
	_CET_ENDBR
	push	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	and	$-64, %rsp
	mov	$\event, %ecx
	mov	sources_vector_size(%rip), %eax
	cmp	$32, %eax
	je	2f
	ja	4f
	sub	$(8*16), %rsp
	VECTORS	movaps, xmm, 16, 1
	call	returns_run
	VECTORS	movaps, xmm, 16, 0
1:	mov	%rbp, %rsp
	pop	%rbp
	.cfi_remember_state
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_restore_state
2:	sub	$(8*32), %rsp
	VECTORS	vmovaps, ymm, 32, 1
	call	returns_run
	VECTORS	vmovaps, ymm, 32, 0
	jmp	1b
4:	sub	$(8*64), %rsp
	VECTORS	vmovaps, zmm, 64, 1
	call	returns_run
	VECTORS	vmovaps, zmm, 64, 0
	jmp	1b
	.cfi_endproc
	.size	\name, .-\name
	.endm

	PLAN	returns_plan_enter, 0
	PLAN	returns_plan_leave, 1
	PLAN	returns_plan_tailcall, 2

	.section .note.GNU-stack, "", @progbits
