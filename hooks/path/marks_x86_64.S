/*
 * The hooks of calltree:counts and of the coarse clock that marks of functions reach
 * directly: enter() and leave() for COUNTS and COARSE.  The number of registers that a hook
 * saves, of jumps, and of lines of the instruction cache limits its speed.  (fib of
 * tests/bench, ns a call, coarse: 4.7 so, 5.2 with a jump between the mark's code and the
 * hook, 6.2 with a call.)
 */
#include "path/layout.h"
#include "shim/mark_hooks.inc"

	.text

/* Jumps to \otherwise if the clock has ticked since the last hook. */
	.macro	CHECK_TICK hot, scratch, otherwise
	mov	%fs:LAYOUT_HOT_TICK(%\hot), %\scratch
	mov	(%\scratch), %\scratch
	cmp	%fs:LAYOUT_HOT_LAST(%\hot), %\scratch
	jne	\otherwise
	.endm

/*
 * rdx: the function; \hot: tree_hot; \frame and \site: offsets of rsp.  Clobbers rax (the
 * node), rcx (the frame) and rdx (its parent).  Labels: 8 for a call that any hook must
 * handle, 7 if the clock has ticked during the hook, which continues at 6.
 */
	.macro	ENTER clock, hot, frame, site
	.ifc	\clock, coarse
	CHECK_TICK \hot, rax, 8f
	.endif
	lea	\frame(%rsp), %rcx
	sub	%fs:LAYOUT_HOT_BELOW(%\hot), %rcx
	lea	(%rdx, %rcx), %eax
	xor	\site(%rsp), %eax
	and	%fs:LAYOUT_HOT_CACHE_MASK(%\hot), %rax	/* before the cache */
	add	%fs:LAYOUT_HOT_CACHE(%\hot), %rax
	mov	(%rax), %rax
	cmp	%rdx, LAYOUT_NODE_FUNCTION(%rax)
	jne	8f
	mov	LAYOUT_NODE_PARENT(%rax), %rdx
	cmp	%fs:LAYOUT_HOT_CURRENT(%\hot), %rdx
	jne	8f
	cmp	%rcx, LAYOUT_NODE_FRAME(%rdx)
	jb	8f
	mov	%rax, %fs:LAYOUT_HOT_CURRENT(%\hot)	/* calls of a signal handler are below it */
	mov	%rcx, LAYOUT_NODE_FRAME(%rax)
	incq	LAYOUT_NODE_CALLS(%rax)
	.ifc	\clock, coarse
	mov	%fs:LAYOUT_HOT_CLOCK(%\hot), %rcx
	mov	%rcx, LAYOUT_NODE_START(%rax)
	CHECK_TICK \hot, rcx, 7f
6:
	.endif
	.endm

/* rdx: the function; \hot: tree_hot.  Clobbers rax, rcx (the node) and rdx. */
	.macro	LEAVE clock, hot
	mov	%fs:LAYOUT_HOT_CURRENT(%\hot), %rcx
	mov	LAYOUT_NODE_PARENT(%rcx), %rax		/* first: parent_of() */
	cmp	%rdx, LAYOUT_NODE_FUNCTION(%rcx)
	jne	8f
	.ifc	\clock, coarse
	CHECK_TICK \hot, rdx, 8f
	mov	%fs:LAYOUT_HOT_CLOCK(%\hot), %rdx
	cmp	%rdx, LAYOUT_NODE_START(%rcx)
	jne	8f
	.endif
	mov	%rax, %fs:LAYOUT_HOT_CURRENT(%\hot)
	movq	$0, LAYOUT_NODE_FRAME(%rcx)
	.ifc	\clock, coarse
	CHECK_TICK \hot, rax, 7f
6:
	.endif
	.endm

/* Behind a hook: what its label 7 is.  Calls \function with \node.  Of the registers that a call
 * may change, the hook has not pushed rdi, r8 to r10 and \more. */
	.macro	TICKED clock, function, node, more
	.ifc	\clock, coarse
7:	MARK_PUSH \more, rdi, r8, r9, r10
	mov	%\node, %rdi
	call	\function
	MARK_POP r10, r9, r8, rdi, \more
	jmp	6b
	.endif
	.endm

/* \kept: the thunk has pushed r11, or 0.  \other: for a call that any hook must handle. */
	.macro	ENTRY_HOOK clock, kept, other
	MARK_PUSH rax, rcx, rdx, rsi
	ENTRY_PREPARE 32+8*\kept, 8f
	mov	tree_hot@gottpoff(%rip), %rsi
	ENTER	\clock, rsi, 16+8*\kept, 32+8*\kept
	.cfi_remember_state
	MARK_POP rsi, rdx, rcx, rax
	.if	\kept
	ENTRY_DROP_KEPT
	.endif
	jmp	shim_entry_replace
	.cfi_restore_state
8:	.cfi_remember_state
	MARK_POP rsi, rdx, rcx, rax
	jmp	\other
	.cfi_restore_state
	TICKED	\clock, tree_enter_ticked, rdx, r11
	.endm

	.macro	HOOKS clock
	.irp	depth, 0, 4
	MARK_BEGIN tree_\clock\()_sled_entry\depth, 6, .cfi_startproc
	MARK_PUSH rax, rcx, rdx
	mov	tree_hot@gottpoff(%rip), %r11
	SLED_ENTRY_FUNCTION rdx, 24, \depth
	ENTER	\clock, r11, 16, 32
	.cfi_remember_state
	MARK_POP rdx, rcx, rax
	ret
	.cfi_restore_state
8:	.cfi_remember_state
	MARK_POP rdx, rcx, rax
	jmp	shim_sled_entry\depth
	.cfi_restore_state
	TICKED	\clock, tree_enter_ticked, rdx, rsi
	MARK_END tree_\clock\()_sled_entry\depth
	.endr

	MARK_BEGIN tree_\clock\()_sled_leave, 6, SLED_BEGIN
	MARK_PUSH rax, rcx, rdx
	mov	tree_hot@gottpoff(%rip), %r11
	SLED_FUNCTION rdx, 24
	LEAVE	\clock, r11
	.cfi_remember_state
	MARK_POP rdx, rcx, rax
	ret	$8
	.cfi_restore_state
8:	.cfi_remember_state
	MARK_POP rdx, rcx, rax
	jmp	shim_sled_leave
	.cfi_restore_state
	TICKED	\clock, tree_leave_ticked, rcx, rsi
	MARK_END tree_\clock\()_sled_leave

	MARK_BEGIN tree_\clock\()_entry, 6, .cfi_startproc
	ENTRY_HOOK \clock, 0, shim_entry
	MARK_END tree_\clock\()_entry

	MARK_BEGIN tree_\clock\()_entry_kept, 6, \
		   ".cfi_startproc; .cfi_def_cfa_offset 16"
	ENTRY_HOOK \clock, 1, shim_entry_kept
	MARK_END tree_\clock\()_entry_kept

	MARK_BEGIN tree_\clock\()_returned, 6, RETURNED_BEGIN
	RETURNED_PUSH rax, rcx, rdx, r11
	mov	tree_hot@gottpoff(%rip), %r11
	RETURNED_RESTORE 32
	LEAVE	\clock, r11
	.cfi_remember_state
	MARK_POP r11, rdx, rcx, rax
	ret
	.cfi_restore_state
8:	.cfi_remember_state
	RETURNED_POP r11, rdx, rcx, rax
	jmp	shim_returned
	.cfi_restore_state
	TICKED	\clock, tree_leave_ticked, rcx, rsi
	MARK_END tree_\clock\()_returned
	.endm

	HOOKS	counts
	HOOKS	coarse

	.section .note.GNU-stack, "", @progbits
