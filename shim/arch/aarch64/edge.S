/*
 * Functions that the program calls instead of libc's functions, and that C cannot
 * express: they must leave no frame between the program and the function that it has
 * called.
 */
#include "macros.inc"

/*
 * __libc_start_main(main, argc, argv, init, fini, rtld_fini, stack_end), and
 * the main that libc gets instead of the program's:
 *
 *     x0, x1, x2 ...  arguments        x30  return address
 *
 * Neither leaves a frame, so the frame of main has the same address as without shim.
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
 * setjmp and its variants save their caller's frame, so shim's frame must not exist when
 * libc's function runs.  The wrapper notes the buffer, then jumps to that function.
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
 * swapcontext(from, to) and setcontext(to) of coroutines do the same.
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
 * Functions that depend on their caller or on the frames above.  A C function gets the same
 * arguments, and the return address as the fourth.  It returns the address to jump to.
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
	FORWARD	backtrace, edge_traces_back
	FORWARD	_Unwind_Backtrace, edge_walks_back

/*
 * The start of a new thread, instead of the program's function:
 *
 *     x0  struct start          x30  return address into libc
 *
 * It jumps to the program's function, or calls it if a profiler wants its return.
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
 * syscall(number, ...): C functions handle the numbers that shim must see.  This code
 * makes the other calls, as libc does: a raw clone may return on another stack, and
 * must find no frame of shim there.
 */
	FUNCTION syscall
	cmp	x0, #220		/* SYS_clone */
	b.eq	2f
	cmp	x0, #435		/* SYS_clone3 */
	b.eq	4f
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
4:	KEEP_ARGUMENTS
	bl	edge_syscall_copies	/* returns whether this is a fork */
	mov	w16, w0
	RESTORE_ARGUMENTS
	tbz	w16, #0, 1b
	b	edge_syscall_fork
	END	syscall
