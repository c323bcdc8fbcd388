/*
 * The compiler's hooks, and the hooks that call hooks of profilers.  This code is
 * between the program and a profiler, and must leave no frame, or a frame of a known
 * layout.
 */
#include "arguments.inc"
#include "runtime/asm_offsets.h"

#include <cet.h>	/* _CET_ENDBR: a landing pad for indirect branches */

	.text

/*
 * The compiler's hooks.  On entry
 *
 *     rdi  the function          (rsp)  return address into it
 *     rsi  its call site
 *
 * Each is one jump to the hook in the table, or to `early` before the table has hooks.
 * Images whose GOT slots shim has bound directly (shim/dispatch/hook_table.c) bypass
 * this code.
 */
	.p2align 4
	.macro	COMPILER_HOOK name, event
	.p2align 4
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	_CET_ENDBR
	mov	table_current+8*\event(%rip), %rax
	test	%rax, %rax
	jz	1f
	jmp	*%rax
1:	mov	$\event, %edx
	jmp	early
	.cfi_endproc
	.size	\name, .-\name
	.endm

	COMPILER_HOOK __cyg_profile_func_enter, 0
	COMPILER_HOOK __cyg_profile_func_exit, 1

/* The hook of an event that no profiler wants. */
	.p2align 4
	.globl	table_nothing
	.hidden	table_nothing
	.type	table_nothing, @function
table_nothing:
	.cfi_startproc
	_CET_ENDBR
	ret
	.cfi_endproc
	.size	table_nothing, .-table_nothing

/*
 * The hook whose number is in edx, until shim has started: starts shim, then jumps to
 * the hook in the table.  The program may have values in argument registers, so this
 * saves them.
 */
	.p2align 4
	.type	early, @function
early:
	.cfi_startproc
	KEEP_ARGUMENTS
	sub	$128, %rsp		/* arguments that slow hooks may read */
	.cfi_adjust_cfa_offset 128
	.irp	number, 0, 1, 2, 3, 4, 5, 6, 7
	movaps	%xmm\number, 16*\number(%rsp)
	.endr
	call	edge_early		/* returns the hook, or NULL */
	.irp	number, 0, 1, 2, 3, 4, 5, 6, 7
	movaps	16*\number(%rsp), %xmm\number
	.endr
	add	$128, %rsp
	.cfi_adjust_cfa_offset -128
	RESTORE_ARGUMENTS
	test	%rax, %rax
	jz	table_nothing
	jmp	*%rax
	.cfi_endproc
	.size	early, .-early

/*
 * Leave hooks of profilers that distinguish how functions end (shim/dispatch/leaves.c):
 *
 *     rdi  the function          (rsp)  return address into the program
 *     rsi  its call site
 *
 * If the return address is the call site, the function ended with a jump to the hook:
 * it has returned.  Otherwise the front table's entry for the return address decides.
 */
	.p2align 4
	.globl	leaves_sort
	.hidden	leaves_sort
	.type	leaves_sort, @function
leaves_sort:
	.cfi_startproc
	_CET_ENDBR
	mov	(%rsp), %rax
	cmp	%rsi, %rax
	je	1f
	imul	$LAYOUT_FRONT_FACTOR, %eax, %ecx
	shr	$LAYOUT_LEAVES_SHIFT, %ecx
	lea	leaves_front(%rip), %rdx
	mov	(%rdx, %rcx, 8), %rdx
	cmp	%rax, %rdx
	jne	2f
1:	jmp	*leaves_hooks(%rip)
2:	btr	$LAYOUT_LEAVES_BIT, %rdx
	cmp	%rax, %rdx
	jne	3f
	mov	landings_count@gottpoff(%rip), %rdx
	cmpb	$0, %fs:(%rdx)
	je	1b
3:	push	%rdi
	.cfi_adjust_cfa_offset 8
	push	%rsi
	.cfi_adjust_cfa_offset 8
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	lea	32(%rsp), %rdx
	mov	%rax, %rcx
	call	leaves_decide		/* returns the hook */
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	pop	%rsi
	.cfi_adjust_cfa_offset -8
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	jmp	*%rax
	.cfi_endproc
	.size	leaves_sort, .-leaves_sort

/*
 * Several profilers with fast hooks that want every function: calls their hooks one
 * after the other, each with the program's stack pointer.
 *
 *     (rsp+40)  return address into the program
 *     (rsp+16)  rbx, r12, rbp: the thread, its plans in use, the next hook
 *     (rsp+8)   rdi, the function
 *     (rsp)     rsi, the call site
 *
 * The code increments thread->dispatching while it uses a plan.  plan_general() handles all
 * other cases.
 */
	.macro	FAST_HOOKS name, event
	.p2align 4
	.globl	\name
	.hidden	\name
	.type	\name, @function
\name:
	.cfi_startproc
	_CET_ENDBR
	.irp	register, rbp, r12, rbx, rdi, rsi
	push	%\register
	.cfi_adjust_cfa_offset 8
	.endr
	.cfi_rel_offset %rbp, 32
	.cfi_rel_offset %r12, 24
	.cfi_rel_offset %rbx, 16
	mov	thread_current@gottpoff(%rip), %rax
	mov	%fs:(%rax), %rbx
	lea	48(%rsp), %rdx
	test	%rbx, %rbx
	jz	5f
	testb	$LAYOUT_THREAD_SHARED, LAYOUT_THREAD_STATE(%rbx)
	jnz	5f
	mov	LAYOUT_THREAD_DISPATCHING(%rbx), %r12d
	test	%r12d, %r12d
	jnz	1f
	mov	%rdx, LAYOUT_THREAD_DISPATCH_SP(%rbx)
1:	lea	1(%r12), %eax
	mov	%eax, LAYOUT_THREAD_DISPATCHING(%rbx)
	mov	plan_current(%rip), %rax
	mov	LAYOUT_PLAN_CHAINS+8*\event(%rax), %rbp
	test	%rbp, %rbp
	jz	4f
	mov	(%rbp), %rax
	test	%rax, %rax
	jz	3f
2:	call	*%rax
	mov	8(%rbp), %rax
	add	$8, %rbp
	mov	8(%rsp), %rdi
	mov	(%rsp), %rsi
	lea	48(%rsp), %rdx
	test	%rax, %rax
	jnz	2b
3:	mov	%r12d, LAYOUT_THREAD_DISPATCHING(%rbx)
	.cfi_remember_state
6:	add	$16, %rsp
	.cfi_adjust_cfa_offset -16
	.irp	register, rbx, r12, rbp
	pop	%\register
	.cfi_adjust_cfa_offset -8
	.cfi_restore %\register
	.endr
	ret
	.cfi_restore_state
4:	mov	%r12d, LAYOUT_THREAD_DISPATCHING(%rbx)
5:	mov	$\event, %ecx
	mov	40(%rsp), %r8
	call	plan_general
	jmp	6b
	.cfi_endproc
	.size	\name, .-\name
	.endm

	FAST_HOOKS plan_enter, 0
	FAST_HOOKS plan_leave, 1
	FAST_HOOKS plan_tailcall, 2

/* PLAN_UNWINDING is so rare that plan_general() handles it. */
	.p2align 4
	.globl	plan_unwinding
	.hidden	plan_unwinding
	.type	plan_unwinding, @function
plan_unwinding:
	.cfi_startproc
	_CET_ENDBR
	lea	8(%rsp), %rdx
	mov	$LAYOUT_UNWINDING, %ecx
	mov	(%rsp), %r8
	jmp	plan_general
	.cfi_endproc
	.size	plan_unwinding, .-plan_unwinding

/*
 * Slow hooks, which may query arguments and more (shim/dispatch/slow_hook.c).  A struct
 * arch_frame for them is on the stack:
 *
 *     (rsp+136) return address into the program
 *     (rsp+128) rsi, the call site
 *     (rsp+120) rdi, the function
 *     (rsp+72)  rbx, rbp, r12, r13, r14, r15, if profilers query arguments
 *     (rsp+56)  MXCSR, control and status word of the x87
 *     (rsp)     entry of the plan, event, which registers there are, errno (for
 *               dispatch/slow_hook.c), room for queries, the front table's entry
 *     (rsp-160) rdx, rcx, r8, r9, xmm0 to xmm7, for enter hooks: arguments that the
 *               function does not use may still be there (struct arch_arguments)
 *
 * The last ones are not saved if the front table (shim/inspect/code_cache.h) says that
 * this call of a hook has its arguments elsewhere: arch_frame_near.
 *
 * If there is one such profiler, this code calls its hook.  thread->frame then tells
 * queries, and threads that wait until no thread is in a hook, that this thread is in
 * one.  It is set before the plan is read.  frame_run() handles all other cases, and
 * calls with little stack left.  For the program this is an ordinary call, so nothing
 * else is saved.
 */
	/* Jumps to \otherwise if the floating point state differs from the one at
	 * \kept of \base.  Compares the exception flags of the x87's status, not its
	 * condition codes.  \scratch of \register: room for 8 bytes. */
	.macro	FLOATING_CHANGED kept, base, scratch, register, otherwise
	stmxcsr	\scratch(%\register)
	fnstcw	4+\scratch(%\register)
	fnstsw	%ax
	mov	\scratch(%\register), %edx
	movzwl	4+\scratch(%\register), %ecx
	xor	6+\kept(%\base), %ax
	xor	\kept(%\base), %edx
	xor	4+\kept(%\base), %cx
	and	$0x3f, %eax
	or	%edx, %ecx
	or	%ecx, %eax
	jnz	\otherwise
	.endm

	/* rbx: the thread; ebp: errno, which is stored only if it changed. */
	.macro	SLOW_HOOK event, registers, below=0
	push	%rsi
	.cfi_adjust_cfa_offset 8
	push	%rdi
	.cfi_adjust_cfa_offset 8
	.if	\registers
	.irp	register, r15, r14, r13, r12, rbp, rbx
	push	%\register
	.cfi_adjust_cfa_offset 8
	.endr
	.else
	sub	$32, %rsp
	.cfi_adjust_cfa_offset 32
	push	%rbp
	.cfi_adjust_cfa_offset 8
	push	%rbx
	.cfi_adjust_cfa_offset 8
	.endif
	.cfi_rel_offset %rbp, 8
	.cfi_rel_offset %rbx, 0
	sub	$(72+\below), %rsp
	.cfi_adjust_cfa_offset 72+\below
	.if	\below
	mov	%rdx, (%rsp)
	mov	%rcx, 8(%rsp)
	mov	%r8, 16(%rsp)
	mov	%r9, 24(%rsp)
	.irp	number, 0, 1, 2, 3, 4, 5, 6, 7
	movaps	%xmm\number, 32+16*\number(%rsp)
	.endr
	.endif
	lea	\below(%rsp), %rsi
	mov	thread_current@gottpoff(%rip), %rbx
	mov	%fs:(%rbx), %rbx
	.if	\registers == 5
	mov	%r10, 48(%rsi)
	.endif
	movl	$(\event + (\registers << 16)), 8(%rsi)
	movq	$0, (%rsi)		/* tells signal handlers: not in a hook yet */
	.if	\event == LAYOUT_UNWINDING
	jmp	2f
	.else
	test	%rbx, %rbx
	jz	2f
	cmpq	$0, LAYOUT_THREAD_FRAME(%rbx)
	jne	2f
	mov	%rsi, %rdx
	sub	LAYOUT_THREAD_CALLBACK_ROOM_LOW(%rbx), %rdx
	cmp	LAYOUT_THREAD_CALLBACK_ROOM_SIZE(%rbx), %rdx
	jae	2f
	mov	%rsi, LAYOUT_THREAD_FRAME(%rbx)
	mov	plan_current(%rip), %rdx
	mov	LAYOUT_PLAN_SINGLE+8*\event(%rdx), %rcx
	test	%rcx, %rcx
	jz	1f
	mov	LAYOUT_PLAN_ENTRY(%rdx), %rdx
	mov	%rdx, (%rsi)
	mov	LAYOUT_THREAD_ERRNO(%rbx), %rdx
	mov	(%rdx), %ebp
	stmxcsr	56(%rsi)
	fnstcw	60(%rsi)
	fnstsw	62(%rsi)
	call	*%rcx
	FLOATING_CHANGED 56+\below, rsp, 16+\below, rsp, 5f
6:	mov	LAYOUT_THREAD_ERRNO(%rbx), %rcx
	movq	$0, LAYOUT_THREAD_FRAME(%rbx)
	cmp	%ebp, (%rcx)
	jne	4f
	.endif
3:	mov	\below+72(%rsp), %rbx
	mov	\below+80(%rsp), %rbp
	.cfi_remember_state
	.cfi_restore %rbx
	.cfi_restore %rbp
	add	$(136+\below), %rsp
	.cfi_adjust_cfa_offset -(136+\below)
	ret
	.cfi_restore_state
	.if	\event != LAYOUT_UNWINDING
1:	movq	$0, LAYOUT_THREAD_FRAME(%rbx)
	.endif
2:	mov	%rsi, %rdi
	call	frame_run
	jmp	3b
	.if	\event != LAYOUT_UNWINDING
4:	mov	%ebp, (%rcx)
	jmp	3b
5:	lea	56+\below(%rsp), %rdi
	call	load_floating
	jmp	6b
	.endif
	.endm

	.macro	SLOW_FUNCTION name, arguments:vararg
	.p2align 4
	.globl	\name
	.hidden	\name
	.type	\name, @function
\name:
	.cfi_startproc
	_CET_ENDBR
	SLOW_HOOK \arguments
	.cfi_endproc
	.size	\name, .-\name
	.endm

	/* r10: the front table's entry for this call; jumps to \otherwise without
	 * one. */
	.macro	LOOK_IN_FRONT otherwise
	mov	(%rsp), %rax
	imul	$LAYOUT_FRONT_FACTOR, %eax, %r11d
	shr	$LAYOUT_FRONT_SHIFT, %r11d
	lea	code_cache_fronts(%rip), %r10
	mov	(%r10, %r11, 8), %r10
	test	%r10, %r10
	jz	\otherwise
	cmp	%rax, (%r10)
	jne	\otherwise
	cmp	%rdi, 8(%r10)
	jne	\otherwise
	.endm

	.macro	LOOKING_FUNCTION name, otherwise
	.p2align 4
	.globl	\name
	.hidden	\name
	.type	\name, @function
\name:
	.cfi_startproc
	_CET_ENDBR
	LOOK_IN_FRONT \otherwise
	SLOW_HOOK 0, 5
	.cfi_endproc
	.size	\name, .-\name
	.endm

/*
 * arch_floating_restore(kept).  load_floating restores a state that has changed.  It
 * reloads the x87's environment, because no instruction sets a single flag.
 */
	.p2align 4
	.globl	arch_floating_restore
	.hidden	arch_floating_restore
	.type	arch_floating_restore, @function
arch_floating_restore:
	.cfi_startproc
	_CET_ENDBR
	FLOATING_CHANGED 0, rdi, -8, rsp, load_floating
	ret
load_floating:
	ldmxcsr	(%rdi)
	fnstenv	-32(%rsp)
	mov	4(%rdi), %ax
	mov	%ax, -32(%rsp)
	mov	6(%rdi), %ax
	mov	%ax, -28(%rsp)
	fldenv	-32(%rsp)
	ret
	.cfi_endproc
	.size	arch_floating_restore, .-arch_floating_restore

	SLOW_FUNCTION plan_slow_enter, 0, 0
	SLOW_FUNCTION plan_slow_leave, 1, 0
	SLOW_FUNCTION plan_slow_tailcall, 2, 0
	SLOW_FUNCTION unknown_enter, 0, 2, 160
	SLOW_FUNCTION plan_inspecting_leave, 1, 1
	SLOW_FUNCTION plan_inspecting_tailcall, 2, 1
	SLOW_FUNCTION plan_inspecting_unwinding, LAYOUT_UNWINDING, 1
	SLOW_FUNCTION unknown_deferred_enter, 0, 1
	LOOKING_FUNCTION plan_inspecting_enter, unknown_enter
	LOOKING_FUNCTION plan_deferred_enter, unknown_deferred_enter

/*
 * shim_hook_defer(function, site), at the end of a fast enter hook: the program's frame
 * and the callee-saved registers are as they were at the call of that hook.
 */
	.globl	shim_hook_defer
	.type	shim_hook_defer, @function
shim_hook_defer:
	.cfi_startproc
	_CET_ENDBR
	jmp	plan_deferred_enter
	.cfi_endproc
	.size	shim_hook_defer, .-shim_hook_defer

	.section .note.GNU-stack, "", @progbits
