/*
 * What marks of the compiler call once they are switched on (shim/sources/).  A mark
 * is in the middle of code that expects that nothing happens there, so unlike a call of
 * a hook, a stub keeps all registers that the code may use.  A mark is
 *
 *     push $(the distance from the end of the call to the function << 8)
 *     call stub
 *
 * and a stub begins with
 *
 *     (rsp+16)  what the stack pointer was at the mark; at the beginning and at the end of
 *               a function, its return address is there, which is the call site
 *     (rsp+8)   the distance << 8
 *     (rsp)     return address into the mark
 *
 * No hook runs with the program's stack pointer, so hooks get what SHIM_CALLER_SP would
 * be if the mark had called the hook: rsp+8.  The word below it is the return address,
 * as for a call of a hook.  Functions have frames between those of their caller and
 * those of their callees, also if these call the compiler's hooks.
 *
 * Each stub removes the distance when it returns.
 */
#include "shim/mark_hooks.inc"

	.section shim_marks, "ax", @progbits	/* edge_runs_hook() */

/* No profiler wants calls, but a thread was on its way, or the mark could not be changed. */
	MARK_BEGIN sources_nothing, 4, SLED_BEGIN
	ret	$8
	MARK_END sources_nothing

/*
 * One profiler, whose hooks use general registers only; also calls that its hooks for marks
 * cannot handle (<shim/mark_hooks.inc>).  Before and after a function runs, nothing uses the
 * flags.  A tail call may be a conditional jump, though: then its hook keeps them.  @size: of
 * what is pushed, which makes the stack pointer a multiple of 16.
 */
	.macro	KEEP_FLAGS		/* in ax */
	lahf
	seto	%al
	.endm

	.macro	RESTORE_FLAGS		/* from ax */
	add	$0x7f, %al		/* overflows */
	sahf
	.endm

	.macro	CALL_DIRECT event, size, hooks=sources_hooks
	mov	\size(%rsp), %rdi
	mov	8+\size(%rsp), %rax
	mov	16+\size(%rsp), %rsi
	lea	8+\size(%rsp), %rdx
	sar	$8, %rax
	add	%rax, %rdi
	call	*\hooks+8*\event(%rip)
	.endm

	.macro	DIRECT name, event
	MARK_BEGIN \name, 4, SLED_BEGIN
	MARK_PUSH r11, r10, r9, r8, rcx, rdx, rsi, rdi, rax
	CALL_DIRECT \event, 72
	MARK_POP rax, rdi, rsi, rdx, rcx, r8, r9, r10, r11
	ret	$8
	MARK_END \name
	.endm

	DIRECT	sources_direct_enter, 0
	/* The arguments of the next function are in registers. */
	DIRECT	sources_direct_tailcall, 2

	/* Some calling conventions preserve most registers. */
	DIRECT	shim_sled_leave, 1

	MARK_BEGIN sources_direct_condition, 4, SLED_BEGIN
	MARK_PUSH r11, r10, r9, r8, rcx, rdx, rsi, rdi, rax
	KEEP_FLAGS
	MARK_PUSH rax, rax
	CALL_DIRECT 2, 88
	MARK_POP rax, rax
	RESTORE_FLAGS
	MARK_POP rax, rdi, rsi, rdx, rcx, r8, r9, r10, r11
	ret	$8
	MARK_END sources_direct_condition

/* A sled at an entry only calls: the stack becomes that of other sleds.  The distance begins at
 * the end of the call, which has 5 bytes. */
	.macro	ENTRY depth
	MARK_BEGIN shim_sled_entry\depth, 4, .cfi_startproc
	push	(%rsp)
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rip, -16
	movq	$(-(5+\depth)<<8), 8(%rsp)
	jmp	*sources_enter(%rip)
	MARK_END shim_sled_entry\depth
	.endm

	ENTRY	0
	ENTRY	4

/* It counts, but the thread has no counters. */
	.macro	UNCOUNTED depth, number
	MARK_BEGIN sources_uncounted\depth, 4, .cfi_startproc
	jmp	*sources_entries+8*\number(%rip)
	MARK_END sources_uncounted\depth
	.endm

	UNCOUNTED 0, 0
	UNCOUNTED 4, 1

	.macro	TAIL_BEGIN name
	MARK_BEGIN \name, 4, .cfi_startproc
	push	(%rsp)
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rip, -16
	MARK_PUSH rax, rcx
	mov	16(%rsp), %rax
	.endm

	.macro	TAIL_END name, stub
	MARK_POP rcx, rax
	jmp	*\stub(%rip)
	MARK_END \name
	.endm

/* A sled at a tail call, too, with the negative distance in a no-op: 66 0f 1f 44 .. .. */
	TAIL_BEGIN sources_sled_tailcall
	movzwl	4(%rax), %ecx
	or	$-65536, %rcx
	shl	$8, %rcx
	mov	%rcx, 24(%rsp)
	TAIL_END sources_sled_tailcall, sources_tailcall

/* A sled before a conditional jump, with the distance in two: 7. .. 7. ..  The flags stay. */
	TAIL_BEGIN sources_sled_condition
	movq	$-65536<<8, 24(%rsp)
	mov	1(%rax), %cl
	mov	%cl, 25(%rsp)
	mov	3(%rax), %cl
	mov	%cl, 26(%rsp)
	TAIL_END sources_sled_condition, sources_condition

	.macro	VECTORS instruction, register, step, store
	.irp	number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	.if	\store
	\instruction	%\register\number, \step*\number(%rsp)
	.else
	\instruction	\step*\number(%rsp), %\register\number
	.endif
	.endr
	.endm

/*
 * All other plans.  Below the mark's return address is a struct arch_frame; sources_run
 * reads arguments and results from what is below it.
 *
 *     (rbp+152) what the stack pointer was at the mark; the call site
 *     (rbp+144) the distance << 8; then the flags of a tail call
 *     (rbp+136) return address into the mark
 *     (rbp)     struct arch_frame
 *     (rbp-72)  rax, rdi, rsi, rdx, rcx, r8 to r11
 *     (rsp)     xmm0 to xmm15, or all that the processor has of them: hooks of modules
 *               may use them, and Microsoft's convention preserves the upper ones
 */
	.macro	PLAN name, event
	MARK_BEGIN \name, 4, SLED_BEGIN
	MARK_PUSH rsi, rdi, r15, r14, r13, r12, rbp, rbx
	.cfi_rel_offset %rbp, 8
	.cfi_rel_offset %rbx, 0
	lea	-72(%rsp), %rsp
	.cfi_adjust_cfa_offset 72
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	.irp	register, rax, rdi, rsi, rdx, rcx, r8, r9, r10, r11
	push	%\register
	.endr
	.if	\event == 2
	KEEP_FLAGS
	mov	%rax, %rcx
	.endif
	mov	136(%rbp), %rdi
	mov	144(%rbp), %rax
	mov	152(%rbp), %rsi
	sar	$8, %rax
	add	%rax, %rdi
	.if	\event == 2
	mov	%rcx, 144(%rbp)
	.endif
	mov	%rdi, 120(%rbp)
	mov	%rsi, 128(%rbp)
	movl	$\event, 8(%rbp)
	movq	$0, (%rbp)		/* tells signal handlers: not in a hook yet */
	mov	%rbp, %rdi
	and	$-64, %rsp		/* functions that are not called by C may not align it */
	mov	sources_vector_size(%rip), %eax
	cmp	$32, %eax
	je	2f
	ja	4f
	sub	$(16*16), %rsp
	VECTORS	movaps, xmm, 16, 1
	mov	%rsp, %rsi
	mov	$16, %edx
	call	sources_run
	VECTORS	movaps, xmm, 16, 0
1:	.if	\event == 2
	mov	144(%rbp), %rax
	RESTORE_FLAGS
	.endif
	lea	-72(%rbp), %rsp
	.irp	register, r11, r10, r9, r8, rcx, rdx, rsi, rdi, rax
	pop	%\register
	.endr
	.cfi_def_cfa_register %rsp
	lea	72(%rsp), %rsp
	.cfi_adjust_cfa_offset -72
	MARK_POP rbx, rbp
	.cfi_restore %rbx
	.cfi_restore %rbp
	lea	48(%rsp), %rsp
	.cfi_adjust_cfa_offset -48
	.cfi_remember_state
	ret	$8
	.cfi_restore_state
	.cfi_def_cfa %rbp, 152
	.cfi_offset %rbx, -80
	.cfi_offset %rbp, -72
2:	sub	$(16*32), %rsp
	VECTORS	vmovaps, ymm, 32, 1
	mov	%rsp, %rsi
	mov	$32, %edx
	call	sources_run
	VECTORS	vmovaps, ymm, 32, 0
	jmp	1b
4:	sub	$(16*64), %rsp
	VECTORS	vmovaps, zmm, 64, 1
	mov	%rsp, %rsi
	mov	$64, %edx
	call	sources_run
	VECTORS	vmovaps, zmm, 64, 0
	jmp	1b
	MARK_END \name
	.endm

	PLAN	sources_plan_enter, 0
	PLAN	sources_plan_leave, 1
	PLAN	sources_plan_tailcall, 2

/* One profiler with a filter: a call that its answers do not admit runs the plan. */
	.macro	CHOOSE name, event, plan
	MARK_BEGIN \name, 4, SLED_BEGIN
	MARK_PUSH r11, r10, r9, r8, rcx, rdx, rsi, rdi, rax
	CALL_DIRECT \event, 72, sources_choices
	test	%al, %al
	MARK_POP rax, rdi, rsi, rdx, rcx, r8, r9, r10, r11	/* keeps the flags */
	jz	\plan
	ret	$8
	MARK_END \name
	.endm

	CHOOSE	sources_choose_enter, 0, sources_plan_enter
	CHOOSE	sources_choose_leave, 1, sources_plan_leave

	MARK_BEGIN sources_choose_tailcall, 4, SLED_BEGIN
	MARK_PUSH r11, r10, r9, r8, rcx, rdx, rsi, rdi, rax
	KEEP_FLAGS
	MARK_PUSH rax, rax
	CALL_DIRECT 2, 88, sources_choices
	mov	%eax, %edi
	MARK_POP rax, rax
	test	%dil, %dil
	jz	1f
	RESTORE_FLAGS
	.cfi_remember_state
	MARK_POP rax, rdi, rsi, rdx, rcx, r8, r9, r10, r11
	ret	$8
	.cfi_restore_state
1:	RESTORE_FLAGS
	MARK_POP rax, rdi, rsi, rdx, rcx, r8, r9, r10, r11
	jmp	sources_plan_tailcall
	MARK_END sources_choose_tailcall

	.section .note.GNU-stack, "", @progbits
