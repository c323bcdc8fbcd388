/*
 * The ways in that C cannot express: symbols of ours that must not put a frame
 * between the program and what it called.
 *
 * Everything begins with a landing pad for indirect branches, and jumps on
 * through x16, which such a pad admits.  Return addresses in here are not
 * signed: their frames are short and ours.
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
 * Around a call of ours in the way of another one: the registers that arguments
 * come in are kept, and the return address with them.
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

/* A frame of two registers, for a call that is not the last thing. */
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

/* \register becomes the thread; x9 goes. */
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
 * One jump to whoever is interested; before there is a table, to where that is made.
 * Images whose slots could be bound directly (shim/dispatch/hook_table.c) do not even come here.
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

/* The hook of an event nobody wants. */
	.hidden	table_nothing
	FUNCTION table_nothing
	ret
	END	table_nothing

/*
 * A hook whose number is in w2, until shim has started: start, then go where the
 * table points by then.  Program code calls us between two of its own
 * instructions, so only what the hook itself may change is changed.
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
 * Neither leaves a frame, so that main stands where it would without us.
 */
	FUNCTION __libc_start_main
	KEEP_ARGUMENTS
	bl	edge_start_main		/* returns libc's */
	mov	x16, x0
	RESTORE_ARGUMENTS
	adrp	x0, start_main
	add	x0, x0, #:lo12:start_main
	br	x16
	END	__libc_start_main

	.hidden	start_main
	FUNCTION start_main
	KEEP_ARGUMENTS
	bl	edge_main_begins	/* returns the program's */
	mov	x16, x0
	RESTORE_ARGUMENTS
	adrp	x17, edge_main_is_awaited
	ldrb	w17, [x17, #:lo12:edge_main_is_awaited]
	cbnz	w17, 1f
	br	x16
1:	BEGIN_FRAME			/* somebody wants to know the return */
	blr	x16
	bl	edge_main_returned	/* returns its argument */
	END_FRAME
	ret
	END	start_main

/*
 * Leave hooks of profilers that want to know how functions end (shim/dispatch/leaves.c):
 *
 *     x0  the function          x30  return address into the program
 *     x1  its call site
 *
 * Jumped to at the end of the function, it returns to the call site: the function
 * has returned.  Nobody reads code on this processor, so that only landing pads make
 * a difference.
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
	bl	leaves_decide		/* returns where to go */
	mov	x9, x0
	ldp	x0, x1, [sp, #16]
	ldp	x29, x30, [sp], #32
	.cfi_adjust_cfa_offset -32
	.cfi_restore x29
	.cfi_restore x30
	br	x9
	END	leaves_sort

/*
 * Several profilers with fast hooks that want every function: their hooks, one
 * after the other, each with the stack pointer the program had.
 *
 *     (sp+48)  x0, x1: the function, the call site
 *     (sp+16)  x19, x20, x21: the thread, the next hook, the thread's count of
 *              plans
 *     (sp)     x29, x30
 *
 * thread->dispatching says that a plan is being read, until it is put back.  All
 * else is done by plan_general.
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

/* What is so rare that it goes the general way: PLAN_UNWINDING. */
	.hidden	plan_unwinding
	FUNCTION plan_unwinding
	mov	x2, sp
	mov	w3, #LAYOUT_UNWINDING
	mov	x4, x30
	b	plan_general
	END	plan_unwinding

/*
 * Hooks of profilers that may ask questions (shim/dispatch/slow_hook.c), for which a struct
 * arch_frame is put on the stack:
 *
 *     (sp+160) x29, x30, the return address into the program
 *     (sp+80)  x19 to x28, if arguments are asked for
 *     (sp+56)  x0, x1: the function, the call site
 *     (sp)     entry of the plan, event, whether there are registers, errno,
 *              room for what is asked
 *
 * With one such profiler its hook is called from here: thread->frame says so to
 * whoever is asked a question, and to who waits for threads to be out of hooks.
 * It is set before the plan is read.  All else is done by frame_run.  To the
 * program this is a call as any other, so nothing else is kept.
 */
	.set	FRAME_SIZE, 176

	.macro	LEAVE_SLOW_HOOK
	ldp	x29, x30, [sp, #160]
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
	stp	x29, x30, [sp, #160]
	.cfi_rel_offset x29, 160
	.cfi_rel_offset x30, 168
	add	x29, sp, #160
	stp	x0, x1, [sp, #56]
	mov	w10, #\event
	.if	\saves
	movk	w10, #1, lsl #16
	stp	x19, x20, [sp, #80]
	stp	x21, x22, [sp, #96]
	stp	x23, x24, [sp, #112]
	stp	x25, x26, [sp, #128]
	stp	x27, x28, [sp, #144]
	.endif
	str	w10, [sp, #8]
	str	xzr, [sp]		/* not in a hook yet, if a handler asks */
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
	blr	x12
	LOAD_THREAD x10
	ldr	w11, [sp, #12]
	ldr	x12, [x10, #LAYOUT_THREAD_ERRNO]
	str	w11, [x12]
	add	x11, x10, #LAYOUT_THREAD_FRAME
	stlr	xzr, [x11]
	.cfi_remember_state
	LEAVE_SLOW_HOOK
	.cfi_restore_state
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
 * and the registers that functions keep are as they were at the call of that
 * hook.
 */
	FUNCTION shim_hook_defer
	b	plan_asking_enter
	END	shim_hook_defer

/*
 * bool arch_call_guarded(callback, a, b, c, d, e): false if callback(a, ..., e)
 * returned, true if an exception came out of it.  The unwinder asks
 * guard_personality (shim/runtime/guard.c), which sends it to arch_guard_caught with
 * the exception in x0.
 *
 *     (sp+16)  FPCR, FPSR: what was computed left flags
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
 * Has the stack pointer saved in @buffer, and tells what it was: @below bytes
 * (a multiple of 16) from here.
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
 * setjmp and kin save their caller's frame, so ours must be gone when the real
 * one runs: note the buffer, then jump.
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
 * swapcontext(from, to) and setcontext(to): the same, for coroutines.
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
 * Functions that look at who called them, or at the frames above: a C function
 * with the same arguments, and the return address as the fourth, says where to
 * jump.
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
 * What a new thread begins with instead of the program's function:
 *
 *     x0  struct start          x30  return address into libc
 *
 * It jumps to that function, or calls it if its return is waited for.
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
 * vfork returns twice to the same frame, which the child may overwrite in
 * between: the return address waits in its register, which the system call
 * keeps.  The child runs on the parent's stack and thread-local data, so
 * profilers are told before and after.
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
 * syscall(number, ...): numbers that matter to us go through C.  The rest are
 * done as libc does them; a raw clone that returns on another stack must find
 * no frame of ours there.
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

/* To whoever may jump here, a landing pad is there. */
	.section .note.gnu.property, "a"
	.p2align 3
	.word	4			/* of the name */
	.word	16			/* of what follows it */
	.word	5			/* NT_GNU_PROPERTY_TYPE_0 */
	.asciz	"GNU"
	.word	0xc0000000		/* GNU_PROPERTY_AARCH64_FEATURE_1_AND */
	.word	4
	.word	1			/* ..._BTI */
	.word	0

	.section .note.GNU-stack, "", %progbits
