/*
 * The ways in that C cannot express: symbols of ours that must not put a frame
 * between the program and what it called.
 */
	.text

/*
 * Around a call of ours in the way of another one: the registers that arguments
 * come in are kept, and the stack is aligned as a call wants it.
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
 * One jump to whoever is interested.  Images whose slots could be bound
 * directly (shim/table.c) do not even come here.
 */
	.p2align 4
	.globl	__cyg_profile_func_enter
	.type	__cyg_profile_func_enter, @function
__cyg_profile_func_enter:
	.cfi_startproc
	jmp	*table_current(%rip)
	.cfi_endproc
	.size	__cyg_profile_func_enter, .-__cyg_profile_func_enter

	.p2align 4
	.globl	__cyg_profile_func_exit
	.type	__cyg_profile_func_exit, @function
__cyg_profile_func_exit:
	.cfi_startproc
	jmp	*table_current+8(%rip)
	.cfi_endproc
	.size	__cyg_profile_func_exit, .-__cyg_profile_func_exit

/* The hook of an event nobody wants. */
	.p2align 4
	.globl	table_nothing
	.hidden	table_nothing
	.type	table_nothing, @function
table_nothing:
	.cfi_startproc
	ret
	.cfi_endproc
	.size	table_nothing, .-table_nothing

/*
 * What the table holds until shim has started: start, then go where the table
 * points by then.  Program code calls us between two of its own instructions,
 * so only what the hook itself may change is changed.
 */
	.macro	STARTER name, offset
	.p2align 4
	.globl	\name
	.hidden	\name
	.type	\name, @function
\name:
	.cfi_startproc
	KEEP_ARGUMENTS
	call	state_start
	RESTORE_ARGUMENTS
	jmp	*table_current+\offset(%rip)
	.cfi_endproc
	.size	\name, .-\name
	.endm

	STARTER	table_start_enter, 0
	STARTER	table_start_leave, 8

/*
 * __libc_start_main(main, argc, argv, init, fini, rtld_fini, stack_end), and
 * the main that libc gets instead of the program's:
 *
 *     rdi, rsi, rdx ...  arguments        (rsp)  return address
 *
 * Neither leaves a frame, so that main stands where it would without us.
 */
	.p2align 4
	.globl	__libc_start_main
	.type	__libc_start_main, @function
__libc_start_main:
	.cfi_startproc
	KEEP_ARGUMENTS
	call	edge_start_main		/* returns libc's */
	RESTORE_ARGUMENTS
	lea	start_main(%rip), %rdi
	jmp	*%rax
	.cfi_endproc
	.size	__libc_start_main, .-__libc_start_main

	.p2align 4
	.type	start_main, @function
start_main:
	.cfi_startproc
	KEEP_ARGUMENTS
	call	edge_main_begins	/* returns the program's */
	RESTORE_ARGUMENTS
	jmp	*%rax
	.cfi_endproc
	.size	start_main, .-start_main

/*
 * int arch_call_on_stack(int (*call)(void *), void *argument, void *top)
 *
 *     top -> (top-16) our frame: the old stack pointer in rbp
 */
	.p2align 4
	.globl	arch_call_on_stack
	.hidden	arch_call_on_stack
	.type	arch_call_on_stack, @function
arch_call_on_stack:
	.cfi_startproc
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
 * setjmp and kin save their caller's frame, so ours must be gone when the real
 * one runs: note the buffer, then jump.
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
	KEEP_ARGUMENTS
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
 * swapcontext(from, to) and setcontext(to): the same, for coroutines.
 */
	.macro	CONTEXT_SWITCHER name, real, context
	.p2align 4
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
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
 * vfork returns twice to the same frame, which the child may overwrite in
 * between: the return address waits in a register that the system call keeps.
 * The child runs on the parent's stack and thread-local data, so profilers
 * are told before and after.
 */
	.p2align 4
	.globl	vfork
	.type	vfork, @function
	.globl	__vfork
	.type	__vfork, @function
vfork:
__vfork:
	.cfi_startproc
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
 * syscall(number, ...): numbers that matter to us go through C.  The rest are
 * done as libc does them; a raw clone that returns on another stack must find
 * no frame of ours there.
 */
	.p2align 4
	.globl	syscall
	.type	syscall, @function
syscall:
	.cfi_startproc
	cmp	$57, %rdi		/* SYS_fork */
	je	edge_syscall_fork
	cmp	$56, %rdi		/* SYS_clone */
	je	2f
	cmp	$157, %rdi		/* SYS_prctl */
	je	3f
	cmp	$317, %rdi		/* SYS_seccomp */
	je	3f
1:	mov	%rdi, %rax
	mov	%rsi, %rdi
	mov	%rdx, %rsi
	mov	%rcx, %rdx
	mov	%r8, %r10
	mov	%r9, %r8
	mov	8(%rsp), %r9
	syscall
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

	.section .note.GNU-stack, "", @progbits
