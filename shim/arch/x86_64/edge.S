/*
 * Functions that the program calls instead of libc's functions, and that C cannot
 * express: they must leave no frame between the program and the function that it has
 * called.
 */
#include "arguments.inc"

#include "shim/mark_hooks.inc"	/* MIRROR; _CET_ENDBR: a landing pad for indirect branches */

	.text

/*
 * __libc_start_main(main, argc, argv, init, fini, rtld_fini, stack_end), and
 * the main that libc gets instead of the program's:
 *
 *     rdi, rsi, rdx ...  arguments        (rsp)  return address
 *
 * Neither leaves a frame, so the frame of main has the same address as without shim.
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
 * setjmp and its variants save their caller's frame, so shim's frame must not exist when
 * libc's function runs.  The wrapper notes the buffer, then jumps to that function.
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
	push	%rdi
	.cfi_adjust_cfa_offset 8
	push	%rsi
	.cfi_adjust_cfa_offset 8
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	mov	%esi, %ecx
	lea	24+8(%rsp), %rsi
	mov	$\real, %edx
	call	edge_jump_saved
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	pop	%rsi
	.cfi_adjust_cfa_offset -8
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	jmp	*%rax
	.cfi_endproc
	.size	\name, .-\name
	.endm

	JUMP_SAVER setjmp, 0
	JUMP_SAVER _setjmp, 1
	JUMP_SAVER __sigsetjmp, 2

/*
 * swapcontext(from, to) and setcontext(to) of coroutines do the same.
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
 * Functions that depend on their caller or on the frames above.  A C function gets the same
 * arguments, and the return address as the fourth.  It returns the address to jump to.
 */
	.macro	FORWARD name, call, look=0
	.p2align 4
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	_CET_ENDBR
	.if	\look
	lea	arch_returned(%rip), %rax
	cmp	%rax, (%rsp)
	jne	1f
	call	returns_give_back
1:
	.endif
	KEEP_ARGUMENTS
	mov	ARGUMENTS_SIZE(%rsp), %rcx
	call	\call
	RESTORE_ARGUMENTS
	jmp	*%rax
	.cfi_endproc
	.size	\name, .-\name
	.endm

/* libc looks for the object of their caller.  A function may end with a jump to them. */
	FORWARD	dlopen, edge_opens, 1
	FORWARD	dlmopen, edge_opens_in, 1
	FORWARD	dlsym, edge_finds_symbol, 1
	FORWARD	dlvsym, edge_finds_version, 1
	FORWARD	__cxa_throw, edge_throws
	FORWARD	__cxa_rethrow, edge_rethrows
	FORWARD	__cxa_begin_catch, edge_catches
	FORWARD	__cxa_end_catch, edge_caught
	FORWARD	pthread_exit, edge_thread_exits
	FORWARD	backtrace, edge_traces_back
	FORWARD	_Unwind_Backtrace, edge_walks_back
	FORWARD	thrd_exit, edge_c11_thread_exits

/*
 * edge_walk_from(registers, walk, each, argument): calls walk(each, argument).  Unwinders
 * take the frame for that of a signal handler that has interrupted the code which the
 * registers say: they are in the order of their numbers in DWARF, and rbx points to them.
 */
	.p2align 4
	.globl	edge_walk_from
	.hidden	edge_walk_from
	.type	edge_walk_from, @function
edge_walk_from:
	.cfi_startproc
	_CET_ENDBR
	push	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	mov	%rdi, %rbx
	.cfi_endproc
	.cfi_startproc
	.cfi_signal_frame
	/* DW_CFA_def_cfa_expression: the stack pointer, *(rbx+56); DW_CFA_expression of
	 * each other register: rbx+8*number */
	.cfi_escape 0x0f, 3, 0x73, 56, 0x06
	.irp	number, 0, 1, 2, 3, 4, 5, 6
	.cfi_escape 0x10, \number, 2, 0x73, 8*\number
	.endr
	.irp	number, 8, 9, 10, 11, 12, 13, 14, 15, 16
	.cfi_escape 0x10, \number, 3, 0x73, 8*\number & 0x7f | 0x80, 8*\number >> 7
	.endr
	mov	%rsi, %rax
	mov	%rdx, %rdi
	mov	%rcx, %rsi
	call	*%rax
	pop	%rbx
	.cfi_endproc
	.cfi_startproc
	ret
	.cfi_endproc
	.size	edge_walk_from, .-edge_walk_from

/*
 * The start of a new thread, instead of the program's function:
 *
 *     rdi  struct start          (rsp)  return address into libc
 *
 * It jumps to the program's function, or calls it if a profiler wants its return.
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
 * syscall(number, ...): C functions handle the numbers that shim must see.  This code
 * makes the other calls, as libc does: a raw clone may return on another stack, and
 * must find no frame of shim there.
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
	cmp	$435, %rdi		/* SYS_clone3 */
	je	5f
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
5:	KEEP_ARGUMENTS
	call	edge_syscall_copies	/* returns whether this is a fork */
	RESTORE_ARGUMENTS
	test	%al, %al
	jz	1b
	jmp	edge_syscall_fork
	.cfi_endproc
	.size	syscall, .-syscall

/*
 * The functions of <shim/compat/mon.h>, whose names a program may define itself (edge/monitor.c),
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
	.macro	COUNT_ARC from, offset
	cmpb	$0, monitor_counts_arcs(%rip)
	jne	2f
	ret
2:
	.irp	register, rax, rcx, rdx, rsi, rdi, r8, r9, r10, rbx
	push	%\register
	.cfi_adjust_cfa_offset 8
	.endr
	.cfi_rel_offset rbx, 0
	lea	\offset(%\from), %rcx
	mov	(%rcx), %rdi
	mov	%r11, %rsi
	lea	arch_returned(%rip), %rax
	cmp	%rax, %rdi
	jne	3f
	MIRROR	rcx			/* the function returns to shim first */
	mov	(%rcx), %rdi
3:	mov	%rsp, %rbx
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
	.globl	edge_count_call
	.hidden	edge_count_call
	.type	edge_count_call, @function
edge_count_call:			/* r11: what would be mcount's return address */
	.cfi_startproc
	_CET_ENDBR
	COUNT_ARC rbp, 8
	.size	edge_count_call, .-edge_count_call

/* The function may have a caller that knows that it leaves r11 alone (entries.c). */
	.macro	COUNT_CALL number, count
	.cfi_startproc
	_CET_ENDBR
	push	%r11
	.cfi_adjust_cfa_offset 8
	mov	edge_monitor_next+8*\number(%rip), %r11
	test	%r11, %r11
	jnz	1f
	mov	8(%rsp), %r11
	call	\count
	.cfi_remember_state
	pop	%r11
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_restore_state
1:	lea	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	jmp	*%r11
	.cfi_endproc
	.endm

	.p2align 4
	.globl	mcount, _mcount
	.type	mcount, @function
	.type	_mcount, @function
mcount:
_mcount:
.Lmcount:
	COUNT_CALL 3, edge_count_call
	.size	mcount, .-mcount
	.size	_mcount, .-_mcount
	.p2align 4
	.globl	edge_count_entry
	.hidden	edge_count_entry
	.type	edge_count_entry, @function
edge_count_entry:			/* r11: as above; the return address is at 24(rsp) */
	.cfi_startproc
	_CET_ENDBR
	COUNT_ARC rsp, 96
	.size	edge_count_entry, .-edge_count_entry
	.p2align 4
	.globl	__fentry__
	.type	__fentry__, @function
__fentry__:
.Lfentry:
	COUNT_CALL 4, edge_count_entry
	.size	__fentry__, .-__fentry__
.Lfentry_end:

/* What does mcount's work, and mcount, are above what does that of __fentry__. */
	.p2align 4
	.globl	shim_mcount_of
	.hidden	shim_mcount_of
	.type	shim_mcount_of, @function
shim_mcount_of:
	.cfi_startproc
	_CET_ENDBR
	xor	%eax, %eax
	lea	edge_count_call(%rip), %rdx
	cmp	%rdx, %rdi
	jb	1f
	lea	.Lfentry_end(%rip), %rdx
	cmp	%rdx, %rdi
	jae	1f
	lea	.Lmcount(%rip), %rax
	lea	edge_count_entry(%rip), %rdx
	cmp	%rdx, %rdi
	jb	1f
	lea	.Lfentry(%rip), %rax
1:	ret
	.cfi_endproc
	.size	shim_mcount_of, .-shim_mcount_of

	.section .note.GNU-stack, "", @progbits
