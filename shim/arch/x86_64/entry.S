/*
 * Entry points that C cannot express: wrappers that must not leave a frame between the
 * program and the function that it called.
 */
#include "runtime/asm_offsets.h"

#include <cet.h>	/* _CET_ENDBR: a landing pad for indirect branches */

	.text

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

/*
 * The compiler's hooks.  On entry
 *
 *     rdi  the function          (rsp)  return address into it
 *     rsi  its call site
 *
 * One jump to the hook in the table, or to `early` until there is a table.  Images
 * whose GOT slots shim could bind directly (shim/dispatch/hook_table.c) bypass this.
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
 * __libc_start_main(main, argc, argv, init, fini, rtld_fini, stack_end), and
 * the main that libc gets instead of the program's:
 *
 *     rdi, rsi, rdx ...  arguments        (rsp)  return address
 *
 * Neither leaves a frame, so the frame of main is where it would be without shim.
 */
	.p2align 4
	.globl	__libc_start_main
	.type	__libc_start_main, @function
__libc_start_main:
	.cfi_startproc
	_CET_ENDBR
	KEEP_ARGUMENTS
	call	edge_start_main		/* returns libc's function */
	RESTORE_ARGUMENTS
	lea	start_main(%rip), %rdi
	jmp	*%rax
	.cfi_endproc
	.size	__libc_start_main, .-__libc_start_main

	.p2align 4
	.type	start_main, @function
start_main:
	.cfi_startproc
	_CET_ENDBR
	KEEP_ARGUMENTS
	call	edge_main_begins	/* returns the program's main */
	RESTORE_ARGUMENTS
	cmpb	$0, edge_main_is_awaited(%rip)
	jne	1f
	jmp	*%rax
1:	sub	$8, %rsp		/* a profiler wants the return of main */
	.cfi_adjust_cfa_offset 8
	call	*%rax
	mov	%eax, %edi
	call	edge_main_returned	/* returns its argument */
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size	start_main, .-start_main

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
 * thread->dispatching is raised while a plan is in use.  plan_general() handles all
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
	sub	LAYOUT_THREAD_ROOMY_LOW(%rbx), %rdx
	cmp	LAYOUT_THREAD_ROOMY_SIZE(%rbx), %rdx
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
	SLOW_FUNCTION unknown_asking_enter, 0, 1
	LOOKING_FUNCTION plan_inspecting_enter, unknown_enter
	LOOKING_FUNCTION plan_asking_enter, unknown_asking_enter

/*
 * shim_hook_defer(function, site), at the end of a fast enter hook: the program's frame
 * and the callee-saved registers are as they were at the call of that hook.
 */
	.globl	shim_hook_defer
	.type	shim_hook_defer, @function
shim_hook_defer:
	.cfi_startproc
	_CET_ENDBR
	jmp	plan_asking_enter
	.cfi_endproc
	.size	shim_hook_defer, .-shim_hook_defer

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

/*
 * setjmp and its variants save their caller's frame, so shim's frame must be gone when
 * the real function runs: note the buffer, then jump.
 *
 *     rdi  the buffer            (rsp)  return address; rsp+8 is where the
 *     esi  savemask                     program goes on
 */
	.macro	JUMP_SAVER name, real
	.p2align 4
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	_CET_ENDBR
	KEEP_ARGUMENTS
	mov	%esi, %ecx
	lea	ARGUMENTS_SIZE+8(%rsp), %rsi
	mov	$\real, %edx
	call	edge_jump_saved
	RESTORE_ARGUMENTS
	jmp	*%rax
	.cfi_endproc
	.size	\name, .-\name
	.endm

	JUMP_SAVER setjmp, 0
	JUMP_SAVER _setjmp, 1
	JUMP_SAVER __sigsetjmp, 2

/*
 * swapcontext(from, to) and setcontext(to): the same for coroutines.
 */
	.macro	CONTEXT_SWITCHER name, real, context
	.p2align 4
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	_CET_ENDBR
	KEEP_ARGUMENTS
	mov	\context, %rdi
	mov	$\real, %esi
	call	edge_context_switched
	RESTORE_ARGUMENTS
	jmp	*%rax
	.cfi_endproc
	.size	\name, .-\name
	.endm

	CONTEXT_SWITCHER swapcontext, 0, %rsi
	CONTEXT_SWITCHER setcontext, 1, %rdi

/*
 * Functions that depend on their caller or on the frames above.  A C function gets the
 * same arguments, and the return address as the fourth, and returns the address to jump
 * to.
 */
	.macro	FORWARD name, call
	.p2align 4
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	_CET_ENDBR
	KEEP_ARGUMENTS
	mov	ARGUMENTS_SIZE(%rsp), %rcx
	call	\call
	RESTORE_ARGUMENTS
	jmp	*%rax
	.cfi_endproc
	.size	\name, .-\name
	.endm

	FORWARD	dlopen, edge_opens
	FORWARD	dlmopen, edge_opens_in
	FORWARD	__cxa_throw, edge_throws
	FORWARD	__cxa_rethrow, edge_rethrows
	FORWARD	__cxa_begin_catch, edge_catches
	FORWARD	__cxa_end_catch, edge_caught
	FORWARD	pthread_exit, edge_thread_exits
	FORWARD	thrd_exit, edge_c11_thread_exits

/*
 * The start of a new thread, instead of the program's function:
 *
 *     rdi  struct start          (rsp)  return address into libc
 *
 * It jumps to that function, or calls it if a profiler wants its return.
 */
	.p2align 4
	.globl	edge_thread_start
	.hidden	edge_thread_start
	.type	edge_thread_start, @function
edge_thread_start:
	.cfi_startproc
	.cfi_personality 0x1b, edge_thread_personality
	_CET_ENDBR
	sub	$24, %rsp		/* struct begun */
	.cfi_adjust_cfa_offset 24
	mov	%rsp, %rsi
	call	edge_thread_begins	/* returns the function */
	mov	(%rsp), %rdi
	cmpb	$0, 8(%rsp)
	jne	1f
	add	$24, %rsp
	.cfi_adjust_cfa_offset -24
	jmp	*%rax
	.cfi_adjust_cfa_offset 24
1:	call	*%rax
	mov	%rax, (%rsp)
	call	edge_thread_returned
	mov	(%rsp), %rax
	add	$24, %rsp
	.cfi_adjust_cfa_offset -24
	ret
	.cfi_endproc
	.size	edge_thread_start, .-edge_thread_start

/*
 * vfork returns twice to the same frame, which the child may overwrite in between, so
 * the return address stays in a register that the system call preserves.  The child
 * runs on the parent's stack and thread-local storage, so events are raised before and
 * after.
 */
	.p2align 4
	.globl	vfork
	.type	vfork, @function
	.globl	__vfork
	.type	__vfork, @function
vfork:
__vfork:
	.cfi_startproc
	_CET_ENDBR
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	edge_vfork_before
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	.cfi_register %rip, %rdx
	mov	$58, %eax		/* SYS_vfork */
	syscall
	push	%rdx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rip, 0
	test	%rax, %rax
	jnz	1f
	ret				/* the child */
1:	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	mov	%rax, %rdi
	call	edge_vfork_after	/* sets errno, returns the result */
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size	vfork, .-vfork
	.size	__vfork, .-__vfork

/*
 * syscall(number, ...): C functions handle the numbers that shim must see.  The others
 * are made here as in libc; a raw clone that returns on another stack must find no
 * frame of shim there.
 */
	.p2align 4
	.globl	syscall
	.type	syscall, @function
syscall:
	.cfi_startproc
	_CET_ENDBR
	cmp	$57, %rdi		/* SYS_fork */
	je	edge_syscall_fork
	cmp	$56, %rdi		/* SYS_clone */
	je	2f
	cmp	$157, %rdi		/* SYS_prctl */
	je	3f
	cmp	$317, %rdi		/* SYS_seccomp */
	je	3f
	cmp	$14, %rdi		/* SYS_rt_sigprocmask */
	je	edge_syscall_signals
	cmp	$13, %rdi		/* SYS_rt_sigaction */
	je	edge_syscall_signals
	cmp	$158, %rdi		/* SYS_arch_prctl */
	je	edge_syscall_pointer
1:	mov	%rdi, %rax
	mov	%rsi, %rdi
	mov	%rdx, %rsi
	mov	%rcx, %rdx
	mov	%r8, %r10
	mov	%r9, %r8
	mov	8(%rsp), %r9
	mov	%rax, -8(%rsp)		/* for arch_find_call */
	syscall
	.globl	arch_syscall_returns
	.hidden	arch_syscall_returns
arch_syscall_returns:
	cmp	$-4095, %rax
	jae	4f
	ret
2:	test	$0x100, %esi		/* CLONE_VM */
	jnz	1b
	jmp	edge_syscall_fork
3:	KEEP_ARGUMENTS
	call	edge_syscall_closing
	RESTORE_ARGUMENTS
	jmp	1b
4:	mov	%rax, %rdi
	jmp	edge_syscall_failed
	.cfi_endproc
	.size	syscall, .-syscall

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
 * Where signal handlers return to, with a ucontext at rsp.  Unwinders recognize the two
 * instructions of libc's function; these end with the same two, and have the same
 * unwind information.  The code before them leaves marks for
 * sampling/syscall_restart.c.
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

/*
 * The functions of <mon.h>, whose names a program may define itself (edge/monitor.c),
 * and the hooks of -pg.
 */
	.macro	ELSE_NEXT number
	mov	edge_monitor_next+8*\number(%rip), %r11
	test	%r11, %r11
	jz	1f
	jmp	*%r11
1:
	.endm

	.macro	ENTRY_OR_NEXT name, ours, number
	.p2align 4
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	_CET_ENDBR
	ELSE_NEXT \number
	jmp	\ours
	.cfi_endproc
	.size	\name, .-\name
	.endm

	ENTRY_OR_NEXT monitor, edge_monitor, 0
	ENTRY_OR_NEXT monitor_signal, edge_monitor_signal, 1
	ENTRY_OR_NEXT monitor_hits, edge_monitor_hits, 2

/*
 * Called at the start of a function.  May change r11 only.
 *
 *     mcount       rbp: its frame, whose return address is at 8(rbp)
 *     __fentry__   at its first instruction: the return address is at 8(rsp)
 */
	.macro	COUNT_ARC from, offset, number
	.cfi_startproc
	_CET_ENDBR
	ELSE_NEXT \number
	cmpb	$0, monitor_counts_arcs(%rip)
	jne	2f
	ret
2:
	.irp	register, rax, rcx, rdx, rsi, rdi, r8, r9, r10, rbx
	push	%\register
	.cfi_adjust_cfa_offset 8
	.endr
	.cfi_rel_offset rbx, 0
	mov	\offset(%\from), %rdi
	mov	72(%rsp), %rsi
	mov	%rsp, %rbx
	.cfi_def_cfa_register rbx
	and	$-16, %rsp
	call	monitor_count_arc
	mov	%rbx, %rsp
	.cfi_def_cfa_register rsp
	.irp	register, rbx, r10, r9, r8, rdi, rsi, rdx, rcx, rax
	pop	%\register
	.cfi_adjust_cfa_offset -8
	.endr
	ret
	.cfi_endproc
	.endm

	.p2align 4
	.globl	mcount, _mcount, __fentry__
	.type	mcount, @function
	.type	_mcount, @function
	.type	__fentry__, @function
mcount:
_mcount:
	COUNT_ARC rbp, 8, 3
	.size	mcount, .-mcount
	.size	_mcount, .-_mcount
	.p2align 4
__fentry__:
	COUNT_ARC rsp, 80, 4
	.size	__fentry__, .-__fentry__

	.section .note.GNU-stack, "", @progbits
