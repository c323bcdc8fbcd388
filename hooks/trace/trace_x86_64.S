/*
 * The fast paths of trace_hooks.c for a trace alone: enter() and leave() with TRACED.
 * The number of their instructions limits their speed.
 *
 *     rdi  the function          (rsp)  return address into it
 *     rsi  its call site
 *
 * The time is half the counter's value (TRACE_SHIFT).
 */
#include "path/layout.h"
#include "trace/trace_layout.h"

#include <cet.h>	/* _CET_ENDBR: an indirect branch may go here */

	.text

/*
 * tree_traced_enter(function, site)
 *
 *     r10: tree_hot; rcx: the frame; r8: where the node may be; the node; rdx: the
 *     time; r9: the trace; rax: the current node; the place of the record; r11: the
 *     record
 */
	.p2align 6
	.globl	tree_traced_enter
	.hidden	tree_traced_enter
	.type	tree_traced_enter, @function
tree_traced_enter:
	.cfi_startproc
	_CET_ENDBR
	mov	tree_hot@gottpoff(%rip), %r10
	mov	%rsp, %rcx
	sub	%fs:LAYOUT_HOT_BELOW(%r10), %rcx
	js	3f				/* the clock may not be read */
	lea	(%rdi, %rcx), %r8d
	xor	%esi, %r8d
	and	%fs:LAYOUT_HOT_CACHE_MASK(%r10), %r8	/* before the cache */
	add	%fs:LAYOUT_HOT_CACHE(%r10), %r8
	rdtsc
	shl	$31, %rdx
	shr	%eax
	or	%rax, %rdx
	mov	(%r8), %r8
	mov	%fs:LAYOUT_HOT_CURRENT(%r10), %rax
	cmp	%rcx, LAYOUT_NODE_FRAME(%rax)
	jb	3f
	cmp	LAYOUT_NODE_FUNCTION(%r8), %rdi
	jne	3f
	cmp	LAYOUT_NODE_PARENT(%r8), %rax
	jne	3f
	mov	%fs:LAYOUT_HOT_TRACE(%r10), %r9
	cmpq	$0, LAYOUT_TRACE_BUSY(%r9)
	jne	3f
	mov	LAYOUT_TRACE_LIMIT(%r9), %r11		/* before the cursor */
	mov	LAYOUT_TRACE_CURSOR(%r9), %rax
	cmp	%r11, %rax
	jae	3f
	mov	%rdx, %r11
	sub	LAYOUT_TRACE_LAST(%r9), %r11
	cmp	$LAYOUT_TRACE_TIME_MASK, %r11
	ja	3f
	mov	%rcx, LAYOUT_NODE_FRAME(%r8)
	mov	LAYOUT_NODE_HITS(%r8), %ecx
	shl	$17, %ecx				/* trace_enter_word() */
	lea	(, %rdx, 4), %r11d
	and	$(LAYOUT_TRACE_TIME_MASK << 2), %r11d
	lea	2(%rcx, %r11), %r11d
	mov	%r8, LAYOUT_TRACE_BECOMES(%r9)
	mov	%r11d, LAYOUT_TRACE_WORD(%r9)
	mov	%rax, LAYOUT_TRACE_BUSY(%r9)
	cmp	LAYOUT_TRACE_CURSOR(%r9), %rax		/* a handler came between? */
	jne	2f
1:	mov	%r8, %fs:LAYOUT_HOT_CURRENT(%r10)
	mov	%r11d, (%rax)				/* trace_put() */
	addq	$4, LAYOUT_TRACE_CURSOR(%r9)
	mov	%rdx, LAYOUT_TRACE_LAST(%r9)
	movq	$0, LAYOUT_TRACE_BUSY(%r9)
	ret
2:	cmp	%fs:LAYOUT_HOT_CURRENT(%r10), %r8	/* trace_is_settled() */
	je	1b
	lea	tree_no_call(%rip), %rcx
	cmp	%rcx, %fs:LAYOUT_HOT_CURRENT(%r10)
	jne	4f
	cmp	LAYOUT_TRACE_SETTLED(%r9), %rax
	je	1b
4:	movq	$0, LAYOUT_TRACE_BUSY(%r9)
	movq	$0, LAYOUT_NODE_FRAME(%r8)
3:	xor	%r8d, %r8d
	mov	%fs:LAYOUT_HOT_CURRENT(%r10), %rcx
	lea	8(%rsp), %rdx
	jmp	tree_enter_missed
	.cfi_endproc
	.size	tree_traced_enter, .-tree_traced_enter

/*
 * tree_traced_leave(function, site)
 *
 *     r8: tree_hot; rcx: the node; rdx: the time; r9: the trace; rax: where the record
 *     goes; r10: the parent; r11: the record
 */
	.p2align 6
	.globl	tree_traced_leave
	.hidden	tree_traced_leave
	.type	tree_traced_leave, @function
tree_traced_leave:
	.cfi_startproc
	_CET_ENDBR
	mov	tree_hot@gottpoff(%rip), %r8
	mov	%fs:LAYOUT_HOT_CURRENT(%r8), %rcx
	mov	LAYOUT_NODE_PARENT(%rcx), %r10		/* first: parent_of() */
	cmp	LAYOUT_NODE_FUNCTION(%rcx), %rdi
	jne	tree_traced_leave_any
	rdtsc
	shl	$31, %rdx
	shr	%eax
	or	%rax, %rdx
	mov	%fs:LAYOUT_HOT_TRACE(%r8), %r9
	cmpq	$0, LAYOUT_TRACE_BUSY(%r9)
	jne	tree_traced_leave_any
	mov	LAYOUT_TRACE_LIMIT(%r9), %r11		/* before the cursor */
	mov	LAYOUT_TRACE_CURSOR(%r9), %rax
	cmp	%r11, %rax
	jae	tree_traced_leave_any
	mov	%rdx, %r11
	sub	LAYOUT_TRACE_LAST(%r9), %r11
	cmp	$LAYOUT_TRACE_TIME_MASK, %r11
	ja	tree_traced_leave_any
	lea	1(%rdx, %rdx), %r11d			/* trace_leave_word() */
	mov	%r10, LAYOUT_TRACE_BECOMES(%r9)
	mov	%r11d, LAYOUT_TRACE_WORD(%r9)
	mov	%rax, LAYOUT_TRACE_BUSY(%r9)
	cmp	LAYOUT_TRACE_CURSOR(%r9), %rax		/* a handler came between? */
	jne	2f
1:	mov	%r10, %fs:LAYOUT_HOT_CURRENT(%r8)
	movq	$0, LAYOUT_NODE_FRAME(%rcx)
	mov	%r11w, (%rax)				/* trace_put() */
	addq	$2, LAYOUT_TRACE_CURSOR(%r9)
	mov	%rdx, LAYOUT_TRACE_LAST(%r9)
	movq	$0, LAYOUT_TRACE_BUSY(%r9)
	ret
2:	cmp	%fs:LAYOUT_HOT_CURRENT(%r8), %r10	/* trace_is_settled() */
	je	1b
	lea	tree_no_call(%rip), %r10
	cmp	%r10, %fs:LAYOUT_HOT_CURRENT(%r8)
	mov	LAYOUT_NODE_PARENT(%rcx), %r10
	jne	4f
	cmp	LAYOUT_TRACE_SETTLED(%r9), %rax
	je	1b
4:	movq	$0, LAYOUT_TRACE_BUSY(%r9)
	jmp	tree_traced_leave_any
	.cfi_endproc
	.size	tree_traced_leave, .-tree_traced_leave

	.section .note.GNU-stack, "", @progbits
