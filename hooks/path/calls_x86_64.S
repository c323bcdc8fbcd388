/*
 * The fast paths of calls.c for which the compiler's code is too slow.
 *
 *     rdi  the function          (rsp)  return address into it
 *     rsi  its call site
 */
#include "path/layout.h"

#include <cet.h>	/* _CET_ENDBR: an indirect branch may go here */

	.text

/*
 * tree_counts_enter(function, site): enter() for calltree:counts, in one line of the
 * instruction cache.
 *
 * A fetch from a second line takes as long as one more jump, and the jumps limit calls
 * that do nothing, whatever else the hooks do: 5.2 ns a call with the compiler's 72 or
 * 91 bytes, 4.8 with these 63, 4.7 with empty hooks.
 *
 * The parent comes from the node.  The one instruction that makes the node current also
 * checks that the parent is current, so no signal handler comes between.
 *
 *     rdx: tree_hot; rcx: the frame; r8: the node; rax: where it may be; its parent
 */
	.p2align 6
#ifdef __CET__
	.skip	60, 0xcc		/* the rest is in a line of its own */
	.set	LINE, 68
#else
	.set	LINE, 64
#endif
	.globl	tree_counts_enter
	.hidden	tree_counts_enter
	.type	tree_counts_enter, @function
tree_counts_enter:
	.cfi_startproc
	_CET_ENDBR
	mov	tree_hot@gottpoff(%rip), %rdx
	mov	%rsp, %rcx
	sub	%fs:LAYOUT_HOT_BELOW(%rdx), %rcx
	lea	(%rdi, %rcx), %eax
	xor	%esi, %eax
	and	%fs:LAYOUT_HOT_CACHE_MASK(%rdx), %eax	/* before the cache */
	add	%fs:LAYOUT_HOT_CACHE(%rdx), %rax
	mov	(%rax), %r8
	mov	LAYOUT_NODE_PARENT(%r8), %rax	/* first: parent_of() */
	cmp	LAYOUT_NODE_FUNCTION(%r8), %rdi
	jne	1f
	cmp	%rcx, LAYOUT_NODE_FRAME(%rax)
	jb	1f
	cmpxchg	%r8, %fs:LAYOUT_HOT_CURRENT(%rdx)
	jne	1f
	mov	%rcx, LAYOUT_NODE_FRAME(%r8)
	incq	LAYOUT_NODE_CALLS(%r8)
	ret
	.org	tree_counts_enter + LINE, 0xcc	/* the assembler fails if the code is longer */
1:	mov	%fs:LAYOUT_HOT_CURRENT(%rdx), %rcx
	lea	8(%rsp), %rdx
	xor	%r8d, %r8d
	jmp	tree_enter_missed
	.cfi_endproc
	.size	tree_counts_enter, .-tree_counts_enter

/*
 * tree_exact_enter(function, site): enter() for calltree:exact.
 *
 * The processor reads the counter after all earlier instructions, and begins later ones
 * after it.  So slow work is divided between both sides: the node's place is computed
 * before, the node is fetched after.  (All of it after: 3 ns a call more; the fetch
 * before, too: 0.9.)
 *
 *     r10: tree_hot; rcx: the frame; r8: where the node may be; the node; rdx: the
 *     time; rax: the current node
 */
	.p2align 6
	.globl	tree_exact_enter
	.hidden	tree_exact_enter
	.type	tree_exact_enter, @function
tree_exact_enter:
	.cfi_startproc
	_CET_ENDBR
	mov	tree_hot@gottpoff(%rip), %r10
	mov	%rsp, %rcx
	sub	%fs:LAYOUT_HOT_BELOW(%r10), %rcx
	js	2f				/* the clock may not be read */
	lea	(%rdi, %rcx), %r8d
	xor	%esi, %r8d
	and	%fs:LAYOUT_HOT_CACHE_MASK(%r10), %r8	/* before the cache */
	add	%fs:LAYOUT_HOT_CACHE(%r10), %r8
	rdtsc
	shl	$32, %rdx
	or	%rax, %rdx
	mov	(%r8), %r8
	mov	%fs:LAYOUT_HOT_CURRENT(%r10), %rax
	cmp	%rcx, LAYOUT_NODE_FRAME(%rax)
	jb	1f
	cmp	LAYOUT_NODE_FUNCTION(%r8), %rdi
	jne	1f
	cmp	LAYOUT_NODE_PARENT(%r8), %rax
	jne	1f
	mov	%r8, %fs:LAYOUT_HOT_CURRENT(%r10)	/* calls of a signal handler are below it */
	mov	%rcx, LAYOUT_NODE_FRAME(%r8)
	mov	%rdx, LAYOUT_NODE_START(%r8)
	incq	LAYOUT_NODE_CALLS(%r8)
	ret
1:	mov	%rdx, %r8
	jmp	3f
2:	xor	%r8d, %r8d
3:	mov	%fs:LAYOUT_HOT_CURRENT(%r10), %rcx
	lea	8(%rsp), %rdx
	jmp	tree_enter_missed
	.cfi_endproc
	.size	tree_exact_enter, .-tree_exact_enter

/*
 * tree_exact_leave(function, site): leave() for calltree:exact.
 *
 * The extra node is prefetched while the counter is read, which does not wait for it.
 *
 *     r8: tree_hot; rcx: the node; r9: its parent; r10: its extra node; rdx: the
 *     duration; rsi: the last one
 */
	.p2align 6
	.globl	tree_exact_leave
	.hidden	tree_exact_leave
	.type	tree_exact_leave, @function
tree_exact_leave:
	.cfi_startproc
	_CET_ENDBR
	mov	tree_hot@gottpoff(%rip), %r8
	mov	%fs:LAYOUT_HOT_CURRENT(%r8), %rcx
	mov	LAYOUT_NODE_PARENT(%rcx), %r9	/* first: parent_of() */
	cmp	LAYOUT_NODE_FUNCTION(%rcx), %rdi
	jne	tree_exact_leave_any
	mov	LAYOUT_NODE_EXTRA(%rcx), %r10
	test	%r10, %r10
	jz	tree_exact_leave_any
	prefetcht0 LAYOUT_EXTRA_LAST(%r10)
	rdtsc
	shl	$32, %rdx
	or	%rax, %rdx
	sub	LAYOUT_NODE_START(%rcx), %rdx
	mov	LAYOUT_EXTRA_LAST(%r10), %rsi	/* exchange_last(), while it is current */
	mov	%rdx, LAYOUT_EXTRA_LAST(%r10)
	mov	%r9, %fs:LAYOUT_HOT_CURRENT(%r8)
	movq	$0, LAYOUT_NODE_FRAME(%rcx)
	mov	%rsi, %rax
	add	%rdx, LAYOUT_NODE_TIME(%rcx)
	sub	LAYOUT_EXTRA_RANGE_LOW(%r10), %rax	/* count_duration() */
	cmp	%rax, LAYOUT_EXTRA_RANGE_SPAN(%r10)
	jb	1f
	bsr	%rsi, %rsi
	incq	LAYOUT_EXTRA_BUCKET - 8 * LAYOUT_SHORT_BUCKETS(%r10, %rsi, 8)
	ret
1:	mov	%r10, %rdi
	jmp	node_widen
	.cfi_endproc
	.size	tree_exact_leave, .-tree_exact_leave

	.section .note.GNU-stack, "", @progbits
