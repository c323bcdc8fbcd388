/*
 * Entries of functions whose ends have no mark (shim/sources/returns.h).  An entry is
 * patched to jump to its thunk, which jumps to shim_entry:
 *
 *     r11     the thunk's data: the function is at 16(r11), the code after the entry at
 *             24(r11) (sources/entry_code.h)
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
 * site.  All registers are preserved.  shim_entry does not keep r11: that is for library
 * calls, whose callers know nothing of the function.  Callers of other functions may know
 * that r11 is left alone, so their thunks push it (shim_entry_kept).
 */
#include "shim/mark_hooks.inc"

	.section shim_marks, "ax", @progbits	/* edge_runs_hook() */

/*
 * Keeps the registers, tells the hook of the entry, and jumps on.  @kept: the thunk has pushed
 * r11, and pops nothing: it is below the stack pointer when the code behind the entry loads it.
 *
 *     (rsp+80+8*kept)  the slot
 *     (rsp+72+8*kept)  the hook's frame; r11, if @kept, otherwise rax
 *     (rsp+64+8*kept)  the word below the frame; the argument registers are below it
 *     (rsp)            the thunk
 */
	.macro	SAVE_ENTRY kept
	.ifeq	\kept
	MARK_PUSH rax
	.endif
	push	24(%r11)
	.cfi_adjust_cfa_offset 8
	MARK_PUSH rcx, rdx, rsi, rdi, r8, r9	/* returns.c reads them */
	.if	\kept
	MARK_PUSH rax
	.endif
	MARK_PUSH r10, r11
	.endm

	.macro	RESTORE_ENTRY kept
	MARK_POP	r11, r10
	.if	\kept
	MARK_POP	rax
	.endif
	MARK_POP	r9, r8, rdi, rsi, rdx, rcx
	.if	\kept
	add	$16, %rsp
	.cfi_adjust_cfa_offset -16
	.else
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	MARK_POP	rax
	.endif
	.endm

	.macro	ENTER kept
	SAVE_ENTRY \kept
	mov	returns_window@gottpoff(%rip), %rax
	mov	80+8*\kept(%rsp), %rsi
	lea	80+8*\kept(%rsp), %rcx
	mov	16(%r11), %rdi
	lea	72+8*\kept(%rsp), %rdx
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
	RESTORE_ENTRY \kept
	.endm

	/* Behind ENTER, and behind the jump to the code after the entry. */
	.macro	ENTER_OTHERWISE kept
	.cfi_restore_state

	/* A tail call: the function that has jumped here ends, and this function takes
	 * over its slot.  So a chain of tail calls needs no memory. */
3:	mov	(%rcx), %rsi
	mov	8(%rcx), %r8
	mov	%rdi, 8(%rcx)
	mov	%r8, %rdi
	mov	%rsi, 64+8*\kept(%rsp)
	call	*returns_hooks+16(%rip)
	mov	(%rsp), %r11
	lea	80+8*\kept(%rsp), %rcx
	lea	72+8*\kept(%rsp), %rdx
	MIRROR	rcx
	mov	24(%r11), %rax
	mov	(%rcx), %rsi
	mov	%rax, 64+8*\kept(%rsp)
	mov	16(%r11), %rdi
	call	*returns_hooks(%rip)
2:	.cfi_remember_state
	RESTORE_ENTRY \kept
	notrack	jmp *24+8*\kept(%r11)
	.cfi_restore_state

4:	mov	%rcx, %rdi
	call	returns_open
	mov	(%rsp), %r11
	mov	80+8*\kept(%rsp), %rsi
	mov	16(%r11), %rdi
	lea	80+8*\kept(%rsp), %rcx
	lea	72+8*\kept(%rsp), %rdx
	cmp	$1, %eax
	je	1b
	jb	2b			/* not recorded, and counted */
	call	*returns_hooks(%rip)	/* without its end */
	jmp	2b
	.endm

	MARK_BEGIN shim_entry, 6, .cfi_startproc
	ENTER	0

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
 * result.  (Some functions of clang's preserve other registers, too; and callers of
 * functions that are not marked may know which ones are left alone.) */
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
	MARK_PUSH rdx, rcx, rsi, rdi, r8, r9, r10, r11
	lea	80(%rsp), %rcx
	lea	72(%rsp), %rdx
	MIRROR	rcx
	mov	(%rcx), %rsi
	mov	8(%rcx), %rdi
	mov	%rsi, 80(%rsp)
	mov	%rsi, 64(%rsp)
	call	*returns_hooks+8(%rip)
	MARK_POP	r11, r10, r9, r8, rdi, rsi, rcx, rdx
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	MARK_POP	rax
	ret

5:	.cfi_def_cfa_offset 8
	.cfi_offset %rip, -8
	.cfi_restore %rsp
	notrack	jmp *24(%r11)
	ENTER_OTHERWISE 0
	MARK_END shim_entry

/*
 * Called at the beginning of a function of shim that must know its caller, and has found
 * arch_returned in its slot: a function has ended with a jump there.  This is its end, and its
 * return address is in the slot again.  Changes rax.
 *
 *     (rsp+72)  the slot
 *     (rsp+64)  the hook's frame
 *     (rsp+56)  the word below it
 */
	.p2align 4
	.globl	returns_give_back
	.hidden	returns_give_back
	.type	returns_give_back, @function
returns_give_back:
	.cfi_startproc
	.cfi_def_cfa_offset 16
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	MARK_PUSH rdi, rsi, rdx, rcx, r8, r9
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	lea	72(%rsp), %rcx
	lea	64(%rsp), %rdx
	MIRROR	rcx
	mov	(%rcx), %rsi
	mov	8(%rcx), %rdi
	mov	%rsi, 72(%rsp)
	mov	%rsi, 56(%rsp)
	call	*returns_hooks+16(%rip)
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	MARK_POP r9, r8, rcx, rdx, rsi, rdi
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size	returns_give_back, .-returns_give_back

/* The thunk has pushed r11.  The code behind the entry is at 32(r11). */
	MARK_BEGIN shim_entry_kept, 6, ".cfi_startproc; .cfi_def_cfa_offset 16"
	ENTER	1
	lea	8(%r11), %r11
	jmp	shim_entry_replace
	ENTER_OTHERWISE 1
	MARK_END shim_entry_kept

/* The caller's address is 24(r11) still, and not where the thunk has pushed r11: the unwinder of
 * a program's handler reads the code that it points to. */
	.macro	CFI_RETURN_IN_THUNK
	/* DW_CFA_val_expression, %rip, 3 bytes: DW_OP_breg11 24; DW_OP_deref */
	.cfi_escape 0x16, 16, 3, 0x7b, 24, 0x06
	.endm

/*
 * A call of mcount, in a function whose frame is complete: the slot of its return address is
 * above the word that rbp points to.  The thunk has pushed r11.  The frame that hooks get is
 * above that word, as for a call of a hook here:
 *
 *     (rsp+88)  the hook's frame
 *     (rsp+80)  the word below it: r11, then the code behind the call of mcount
 *     (rsp+16)  r11
 *     (rsp)     the thunk
 *
 * Behind the call the thunk loads r11, which is then 72 bytes below the stack pointer.
 */
	MARK_BEGIN returns_enter_mcount, 6, ".cfi_startproc; CFI_RETURN_IN_THUNK"
	MARK_PUSH rcx
	mov	8(%rsp), %rcx
	mov	%rcx, -56(%rsp)
	mov	24(%r11), %rcx
	mov	%rcx, 8(%rsp)
	.cfi_offset %rip, -8
	MARK_PUSH rdx, rsi, rdi, r8, r9, rax
	lea	-8(%rsp), %rsp
	.cfi_adjust_cfa_offset 8
	MARK_PUSH r10, r11
	mov	returns_window@gottpoff(%rip), %rax
	lea	8(%rbp), %rcx
	mov	%rcx, %r8
	xor	%fs:(%rax), %r8
	shr	$20, %r8
	jnz	4f			/* another part of the stack */
1:	mov	8(%rbp), %rsi
	mov	16(%r11), %rdi
	lea	88(%rsp), %rdx
	lea	arch_returned(%rip), %rax
	MIRROR	rcx
	cmp	%rax, %rsi
	je	3f
	mov	%rsi, (%rcx)
	mov	%rdi, 8(%rcx)
	call	*returns_hook_of_mcount(%rip)
	.cfi_remember_state
	MARK_POP r11, r10
	lea	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	MARK_POP rax, r9, r8, rdi, rsi, rdx, rcx
	lea	8(%r11), %r11
	jmp	shim_entry_replace
	.cfi_restore_state

	/* A tail call, as for an entry. */
3:	mov	(%rcx), %rsi
	mov	8(%rcx), %r8
	mov	%rdi, 8(%rcx)
	mov	%r8, %rdi
	mov	%rsi, 80(%rsp)
	call	*returns_hooks+16(%rip)
	mov	(%rsp), %r11
	lea	8(%rbp), %rcx
	MIRROR	rcx
	mov	24(%r11), %rax
	mov	(%rcx), %rsi
	mov	%rax, 80(%rsp)
	mov	16(%r11), %rdi
	lea	88(%rsp), %rdx
	call	*returns_hook_of_mcount(%rip)
2:	.cfi_remember_state
	MARK_POP r11, r10
	lea	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	MARK_POP rax, r9, r8, rdi, rsi, rdx, rcx
	lea	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	push	8(%rbp)			/* the thunk pops it */
	.cfi_adjust_cfa_offset 8
	notrack	jmp *32(%r11)
	.cfi_restore_state

4:	mov	%rcx, %rdi
	call	returns_open
	mov	(%rsp), %r11
	lea	8(%rbp), %rcx
	cmp	$1, %eax
	je	1b
	jb	2b			/* not recorded, and counted */
	mov	8(%rbp), %rsi
	mov	16(%r11), %rdi
	lea	88(%rsp), %rdx
	call	*returns_hook_of_mcount(%rip)	/* without its end */
	jmp	2b
	MARK_END returns_enter_mcount

/*
 * mcount's work, for a function that is on after its hooks, or off.  The thunk has pushed r11, and
 * jumps here, where unwinders know the caller: code of the thunk has no tables.
 */
	.macro	COUNT_FOR_THUNK name, counter
	MARK_BEGIN \name, 4, ".cfi_startproc; CFI_RETURN_IN_THUNK"
	push	24(%r11)
	.cfi_def_cfa_offset 16
	.cfi_offset %rip, -16
	mov	(%rsp), %r11
	call	*\counter(%rip)
	mov	8(%rsp), %r11
	lea	16(%rsp), %rsp
	.cfi_def_cfa_offset 0
	notrack	jmp *-16(%rsp)
	MARK_END \name
	.endm

	COUNT_FOR_THUNK returns_count_mcount, mcount_counter
	COUNT_FOR_THUNK returns_count_fentry, mcount_entry_counter

/* The hook if no profiler wants calls. */
	MARK_BEGIN returns_nothing, 4, .cfi_startproc
	ret
	MARK_END returns_nothing

/*
 * The hooks for all other plans: they keep the vector registers that may have arguments or
 * results, because hooks of modules may use them, and call
 * returns_run(function, site, frame, event, the vector registers, their size).  They keep all 16 registers that code
 * without AVX-512 has: the compiler of a function that is not marked knows which of them
 * the function leaves alone, and its callers use that.
 */
	.macro	VECTORS instruction, register, step, store
	.irp	number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	.if	\store
	\instruction	%\register\number, \step*\number(%rsp)
	.else
	\instruction	\step*\number(%rsp), %\register\number
	.endif
	.endr
	.endm

	.macro	PLAN name, event
	MARK_BEGIN \name, 4, .cfi_startproc
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
	sub	$(16*16), %rsp
	VECTORS	movaps, xmm, 16, 1
	mov	%rsp, %r8
	mov	$16, %r9d
	call	returns_run
	VECTORS	movaps, xmm, 16, 0
1:	mov	%rbp, %rsp
	pop	%rbp
	.cfi_remember_state
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_restore_state
2:	sub	$(16*32), %rsp
	VECTORS	vmovaps, ymm, 32, 1
	mov	%rsp, %r8
	mov	$32, %r9d
	call	returns_run
	VECTORS	vmovaps, ymm, 32, 0
	jmp	1b
4:	sub	$(16*64), %rsp
	VECTORS	vmovaps, zmm, 64, 1
	mov	%rsp, %r8
	mov	$64, %r9d
	call	returns_run
	VECTORS	vmovaps, zmm, 64, 0
	jmp	1b
	MARK_END \name
	.endm

	PLAN	returns_plan_enter, 0
	PLAN	returns_plan_mcount, 3	/* RETURNS_MCOUNT */
	PLAN	returns_plan_leave, 1
	PLAN	returns_plan_tailcall, 2

	.section .note.GNU-stack, "", @progbits
