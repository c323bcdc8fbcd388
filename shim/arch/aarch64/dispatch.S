/*
 * The compiler's hooks, and the hooks that call hooks of profilers.  This code is
 * between the program and a profiler, and must leave no frame, or a frame of a known
 * layout.
 */
#include "macros.inc"
#include "runtime/asm_offsets.h"

/*
 * The compiler's hooks.  On entry
 *
 *     x0  the function          x30  return address into it
 *     x1  its call site
 *
 * Each is one jump to the hook in the table, or to `early` before the table has hooks.
 * Images whose GOT slots shim has bound directly (shim/dispatch/hook_table.c) bypass
 * this code.
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
 * The code increments thread->dispatching while it uses a plan.  plan_general() handles all
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
	ldp	x11, x12, [x10, #LAYOUT_THREAD_CALLBACK_ROOM_LOW]
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
	SLOW_HOOK plan_deferred_enter, 0, 1

/*
 * shim_hook_defer(function, site), at the end of a fast enter hook: the program's frame
 * and the callee-saved registers are as they were at the call of that hook.
 */
	FUNCTION shim_hook_defer
	b	plan_deferred_enter
	END	shim_hook_defer
