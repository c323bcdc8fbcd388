/*
 * Entry points that C cannot express: wrappers that must not leave a frame between the
 * program and the function that it called.
 *
 * Each function begins with a landing pad for indirect branches, and jumps through x16,
 * which such a pad admits.  Return addresses in this file are not signed: their frames
 * are short-lived and shim's own.
 */
#include "runtime/asm_offsets.h"

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

/*
 * The compiler's hooks.  On entry
 *
 *     x0  the function          x30  return address into it
 *     x1  its call site
 *
 * One jump to the hook in the table, or to `early` until there is a table.  Images
 * whose GOT slots shim could bind directly (shim/dispatch/hook_table.c) bypass this.
 */
	.macro	COMPILER_HOOK name, event
	FUNCTION \name
	LOAD	x16, table_current+8*\event
	cbz	x16, 1f
	br	x16
1:	mov	w2, #\event
	b	early
	END	\name
	.endm

	COMPILER_HOOK __cyg_profile_func_enter, 0
	COMPILER_HOOK __cyg_profile_func_exit, 1

/* The hook of an event that no profiler wants. */
	.hidden	table_nothing
	FUNCTION table_nothing
	ret
	END	table_nothing

/*
 * The hook whose number is in w2, until shim has started: starts shim, then jumps to
 * the hook in the table.  The program may have values in argument registers, so this
 * saves them.
 */
	.hidden	early
	FUNCTION early
	KEEP_ARGUMENTS
	bl	edge_early		/* returns the hook, or NULL */
	mov	x16, x0
	RESTORE_ARGUMENTS
	cbz	x16, 1f
	br	x16
1:	ret
	END	early

/*
 * __libc_start_main(main, argc, argv, init, fini, rtld_fini, stack_end), and
 * the main that libc gets instead of the program's:
 *
 *     x0, x1, x2 ...  arguments        x30  return address
 *
 * Neither leaves a frame, so the frame of main is where it would be without shim.
 */
	FUNCTION __libc_start_main
	KEEP_ARGUMENTS
	bl	edge_start_main		/* returns libc's function */
	mov	x16, x0
	RESTORE_ARGUMENTS
	adrp	x0, start_main
	add	x0, x0, #:lo12:start_main
	br	x16
	END	__libc_start_main

	.hidden	start_main
	FUNCTION start_main
	KEEP_ARGUMENTS
	bl	edge_main_begins	/* returns the program's main */
	mov	x16, x0
	RESTORE_ARGUMENTS
	adrp	x17, edge_main_is_awaited
	ldrb	w17, [x17, #:lo12:edge_main_is_awaited]
	cbnz	w17, 1f
	br	x16
1:	BEGIN_FRAME			/* a profiler wants the return of main */
	blr	x16
	bl	edge_main_returned	/* returns its argument */
	END_FRAME
	ret
	END	start_main

/*
 * Leave hooks of profilers that distinguish how functions end (shim/dispatch/leaves.c):
 *
 *     x0  the function          x30  return address into the program
 *     x1  its call site
 *
 * If the return address is the call site, the function ended with a jump to the hook:
 * it has returned.  Otherwise only landing pads make a difference, because shim does
 * not decode code on this processor.
 */
	.hidden	leaves_sort
	FUNCTION leaves_sort
	cmp	x30, x1
	b.eq	1f
	mrs	x9, tpidr_el0
	adrp	x10, :gottprel:landings_count
	ldr	x10, [x10, #:gottprel_lo12:landings_count]
	ldrb	w9, [x9, x10]
	cbnz	w9, 2f
1:	LOAD	x9, leaves_hooks
	br	x9
2:	stp	x29, x30, [sp, #-32]!
	.cfi_adjust_cfa_offset 32
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	stp	x0, x1, [sp, #16]
	mov	x29, sp
	add	x2, sp, #32
	mov	x3, x30
	bl	leaves_decide		/* returns the hook */
	mov	x9, x0
	ldp	x0, x1, [sp, #16]
	ldp	x29, x30, [sp], #32
	.cfi_adjust_cfa_offset -32
	.cfi_restore x29
	.cfi_restore x30
	br	x9
	END	leaves_sort

/*
 * Several profilers with fast hooks that want every function: calls their hooks one
 * after the other, each with the program's stack pointer.
 *
 *     (sp+48)  x0, x1: the function, the call site
 *     (sp+16)  x19, x20, x21: the thread, the next hook, the thread's plans in use
 *     (sp)     x29, x30
 *
 * thread->dispatching is raised while a plan is in use.  plan_general() handles all
 * other cases.
 */
	.set	HOOKS_SIZE, 64

	.macro	FAST_HOOKS name, event
	.hidden	\name
	FUNCTION \name
	stp	x29, x30, [sp, #-HOOKS_SIZE]!
	.cfi_adjust_cfa_offset HOOKS_SIZE
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	mov	x29, sp
	stp	x19, x20, [sp, #16]
	.cfi_rel_offset x19, 16
	.cfi_rel_offset x20, 24
	str	x21, [sp, #32]
	.cfi_rel_offset x21, 32
	stp	x0, x1, [sp, #48]
	add	x2, sp, #HOOKS_SIZE
	LOAD_THREAD x19
	cbz	x19, 5f
	ldr	w9, [x19, #LAYOUT_THREAD_STATE]
	tst	w9, #LAYOUT_THREAD_SHARED
	b.ne	5f
	ldr	w21, [x19, #LAYOUT_THREAD_DISPATCHING]
	cbnz	w21, 1f
	str	x2, [x19, #LAYOUT_THREAD_DISPATCH_SP]
1:	add	w9, w21, #1
	str	w9, [x19, #LAYOUT_THREAD_DISPATCHING]
	LOAD	x9, plan_current
	ldr	x20, [x9, #LAYOUT_PLAN_CHAINS+8*\event]
	cbz	x20, 4f
	ldr	x9, [x20]
	cbz	x9, 3f
2:	blr	x9
	ldr	x9, [x20, #8]!
	ldp	x0, x1, [sp, #48]
	add	x2, sp, #HOOKS_SIZE
	cbnz	x9, 2b
3:	add	x9, x19, #LAYOUT_THREAD_DISPATCHING
	stlr	w21, [x9]
6:	ldr	x21, [sp, #32]
	ldp	x19, x20, [sp, #16]
	.cfi_remember_state
	ldp	x29, x30, [sp], #HOOKS_SIZE
	.cfi_adjust_cfa_offset -HOOKS_SIZE
	.irp	register, x19, x20, x21, x29, x30
	.cfi_restore \register
	.endr
	ret
	.cfi_restore_state
4:	add	x9, x19, #LAYOUT_THREAD_DISPATCHING
	stlr	w21, [x9]
5:	mov	w3, #\event
	ldr	x4, [sp, #8]
	bl	plan_general
	b	6b
	END	\name
	.endm

	FAST_HOOKS plan_enter, 0
	FAST_HOOKS plan_leave, 1
	FAST_HOOKS plan_tailcall, 2

/* PLAN_UNWINDING is so rare that plan_general() handles it. */
	.hidden	plan_unwinding
	FUNCTION plan_unwinding
	mov	x2, sp
	mov	w3, #LAYOUT_UNWINDING
	mov	x4, x30
	b	plan_general
	END	plan_unwinding

/*
 * Slow hooks, which may query arguments and more (shim/dispatch/slow_hook.c).  A struct
 * arch_frame for them is on the stack:
 *
 *     (sp+176) x29, x30, the return address into the program
 *     (sp+96)  x19 to x28, if profilers query arguments
 *     (sp+80)  FPCR, FPSR
 *     (sp+56)  x0, x1: the function, the call site
 *     (sp)     entry of the plan, event, whether there are registers, errno,
 *              room for queries
 *
 * If there is one such profiler, this code calls its hook.  thread->frame then tells
 * queries, and threads that wait until no thread is in a hook, that this thread is in
 * one.  It is set before the plan is read.  frame_run() handles all other cases.  For
 * the program this is an ordinary call, so nothing else is saved.
 */
	.set	FRAME_SIZE, 192

	.macro	LEAVE_SLOW_HOOK
	ldp	x29, x30, [sp, #176]
	add	sp, sp, #FRAME_SIZE
	.cfi_adjust_cfa_offset -FRAME_SIZE
	.cfi_restore x29
	.cfi_restore x30
	ret
	.endm

	.macro	SLOW_HOOK name, event, saves
	.hidden	\name
	FUNCTION \name
	sub	sp, sp, #FRAME_SIZE
	.cfi_adjust_cfa_offset FRAME_SIZE
	stp	x29, x30, [sp, #176]
	.cfi_rel_offset x29, 176
	.cfi_rel_offset x30, 184
	add	x29, sp, #176
	stp	x0, x1, [sp, #56]
	mov	w10, #\event
	.if	\saves
	movk	w10, #1, lsl #16
	stp	x19, x20, [sp, #96]
	stp	x21, x22, [sp, #112]
	stp	x23, x24, [sp, #128]
	stp	x25, x26, [sp, #144]
	stp	x27, x28, [sp, #160]
	.endif
	str	w10, [sp, #8]
	str	xzr, [sp]		/* tells signal handlers: not in a hook yet */
	.if	\event != LAYOUT_UNWINDING
	LOAD_THREAD x10
	cbz	x10, 2f
	ldr	x11, [x10, #LAYOUT_THREAD_FRAME]
	cbnz	x11, 2f
	mov	x1, sp
	ldp	x11, x12, [x10, #LAYOUT_THREAD_ROOMY_LOW]
	sub	x11, x1, x11
	cmp	x11, x12
	b.hs	2f
	str	x1, [x10, #LAYOUT_THREAD_FRAME]
	LOAD	x11, plan_current
	ldr	x12, [x11, #LAYOUT_PLAN_SINGLE+8*\event]
	cbz	x12, 1f
	ldr	x11, [x11, #LAYOUT_PLAN_ENTRY]
	str	x11, [sp]
	ldr	x11, [x10, #LAYOUT_THREAD_ERRNO]
	ldr	w11, [x11]
	str	w11, [sp, #12]
	mrs	x10, fpcr
	mrs	x11, fpsr
	stp	x10, x11, [sp, #80]
	blr	x12
	ldp	x10, x11, [sp, #80]
	mrs	x12, fpcr
	cmp	x10, x12
	b.ne	4f
	mrs	x12, fpsr
	cmp	x11, x12
	b.ne	4f
3:
	LOAD_THREAD x10
	ldr	w11, [sp, #12]
	ldr	x12, [x10, #LAYOUT_THREAD_ERRNO]
	str	w11, [x12]
	add	x11, x10, #LAYOUT_THREAD_FRAME
	stlr	xzr, [x11]
	.cfi_remember_state
	LEAVE_SLOW_HOOK
	.cfi_restore_state
4:	msr	fpcr, x10
	msr	fpsr, x11
	b	3b
1:	add	x11, x10, #LAYOUT_THREAD_FRAME
	stlr	xzr, [x11]
	.endif
2:	mov	x0, sp
	bl	frame_run
	LEAVE_SLOW_HOOK
	END	\name
	.endm

	SLOW_HOOK plan_slow_enter, 0, 0
	SLOW_HOOK plan_slow_leave, 1, 0
	SLOW_HOOK plan_slow_tailcall, 2, 0
	SLOW_HOOK plan_inspecting_enter, 0, 1
	SLOW_HOOK plan_inspecting_leave, 1, 1
	SLOW_HOOK plan_inspecting_tailcall, 2, 1
	SLOW_HOOK plan_inspecting_unwinding, LAYOUT_UNWINDING, 1
	SLOW_HOOK plan_asking_enter, 0, 1

/*
 * shim_hook_defer(function, site), at the end of a fast enter hook: the program's frame
 * and the callee-saved registers are as they were at the call of that hook.
 */
	FUNCTION shim_hook_defer
	b	plan_asking_enter
	END	shim_hook_defer

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

/*
 * uintptr_t arch_measure_jump(int (*saver)(void *), void *buffer, size_t below)
 *
 * Lets @saver save the stack pointer in @buffer, and returns that stack pointer: @below
 * bytes (a multiple of 16) below the frame.
 */
	.hidden	arch_measure_jump
	FUNCTION arch_measure_jump
	BEGIN_FRAME
	.cfi_def_cfa_register x29
	mov	x9, x0
	mov	x0, x1
	mov	x1, #0
	sub	sp, sp, x2
	blr	x9
	mov	x0, sp
	mov	sp, x29
	.cfi_def_cfa_register sp
	END_FRAME
	ret
	END	arch_measure_jump

/*
 * setjmp and its variants save their caller's frame, so shim's frame must be gone when
 * the real function runs: note the buffer, then jump.
 *
 *     x0  the buffer            x30  return address; sp is where the program
 *     w1  savemask                   goes on
 */
	.macro	JUMP_SAVER name, real
	FUNCTION \name
	KEEP_ARGUMENTS
	mov	w3, w1
	add	x1, sp, #ARGUMENTS_SIZE
	mov	w2, #\real
	bl	edge_jump_saved
	mov	x16, x0
	RESTORE_ARGUMENTS
	br	x16
	END	\name
	.endm

	JUMP_SAVER setjmp, 0
	JUMP_SAVER _setjmp, 1
	JUMP_SAVER __sigsetjmp, 2

/*
 * swapcontext(from, to) and setcontext(to): the same for coroutines.
 */
	.macro	CONTEXT_SWITCHER name, real, context
	FUNCTION \name
	KEEP_ARGUMENTS
	mov	x0, \context
	mov	w1, #\real
	bl	edge_context_switched
	mov	x16, x0
	RESTORE_ARGUMENTS
	br	x16
	END	\name
	.endm

	CONTEXT_SWITCHER swapcontext, 0, x1
	CONTEXT_SWITCHER setcontext, 1, x0

/*
 * Functions that depend on their caller or on the frames above.  A C function gets the
 * same arguments, and the return address as the fourth, and returns the address to jump
 * to.
 */
	.macro	FORWARD name, call
	FUNCTION \name
	KEEP_ARGUMENTS
	mov	x3, x30
	bl	\call
	mov	x16, x0
	RESTORE_ARGUMENTS
	br	x16
	END	\name
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
 *     x0  struct start          x30  return address into libc
 *
 * It jumps to that function, or calls it if a profiler wants its return.
 */
	.hidden	edge_thread_start
	FUNCTION edge_thread_start
	.cfi_personality 0x1b, edge_thread_personality
	BEGIN_FRAME
	sub	sp, sp, #16		/* struct begun */
	.cfi_adjust_cfa_offset 16
	mov	x1, sp
	bl	edge_thread_begins	/* returns the function */
	mov	x16, x0
	ldp	x0, x9, [sp]
	.cfi_remember_state
	cbnz	w9, 1f
	add	sp, sp, #16
	.cfi_adjust_cfa_offset -16
	END_FRAME
	br	x16
	.cfi_restore_state
1:	blr	x16
	str	x0, [sp]
	bl	edge_thread_returned
	ldr	x0, [sp], #16
	.cfi_adjust_cfa_offset -16
	END_FRAME
	ret
	END	edge_thread_start

/*
 * vfork returns twice to the same frame, which the child may overwrite in between, so
 * the return address stays in its register, which the system call preserves.  The child
 * runs on the parent's stack and thread-local storage, so events are raised before and
 * after.
 */
	.globl	__vfork
	.type	__vfork, %function
	.p2align 4
__vfork:
	FUNCTION vfork
	BEGIN_FRAME
	bl	edge_vfork_before
	END_FRAME
	mov	x0, #0x4111		/* CLONE_VM | CLONE_VFORK | SIGCHLD */
	mov	x1, sp
	mov	x8, #220		/* SYS_clone */
	svc	#0
	cbnz	x0, 1f
	ret				/* the child */
1:	BEGIN_FRAME
	bl	edge_vfork_after	/* sets errno, returns the result */
	END_FRAME
	ret
	END	vfork
	.size	__vfork, .-__vfork

/*
 * syscall(number, ...): C functions handle the numbers that shim must see.  The others
 * are made here as in libc; a raw clone that returns on another stack must find no
 * frame of shim there.
 */
	FUNCTION syscall
	cmp	x0, #220		/* SYS_clone */
	b.eq	2f
	cmp	x0, #167		/* SYS_prctl */
	b.eq	3f
	cmp	x0, #277		/* SYS_seccomp */
	b.eq	3f
1:	mov	x8, x0
	mov	x0, x1
	mov	x1, x2
	mov	x2, x3
	mov	x3, x4
	mov	x4, x5
	mov	x5, x6
	svc	#0
	cmn	x0, #4095
	b.cs	edge_syscall_failed
	ret
2:	tst	x1, #0x100		/* CLONE_VM */
	b.ne	1b
	b	edge_syscall_fork
3:	KEEP_ARGUMENTS
	bl	edge_syscall_closing
	RESTORE_ARGUMENTS
	b	1b
	END	syscall

/* Marks this code as having landing pads for indirect branches (BTI). */
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
