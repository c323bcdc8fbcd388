/*
 * tree_counts_enter(function, site): enter() of calltree.c for calltree:counts, in one
 * line of the instruction cache.
 *
 * What is fetched from two lines takes as long as a jump more, and calls that do
 * nothing are bound by their jumps, whatever else the hooks do: 5.2 ns a call with
 * the compiler's 72 or 91 bytes, 4.8 with these 63, 4.7 with hooks that are empty.
 *
 * The parent is what the node says; that it is current is asked by the one
 * instruction that makes the node current, so no handler comes between.
 *
 *     rdi  the function          (rsp)  return address into it
 *     rsi  its call site
 *
 *     rdx: tree_hot; rcx: the frame; r8: the node; rax: where it may be; its parent
 */
#include "calltree_layout.h"

	.text
	.p2align 6
	.globl	tree_counts_enter
	.hidden	tree_counts_enter
	.type	tree_counts_enter, @function
tree_counts_enter:
	.cfi_startproc
	mov	tree_hot@gottpoff(%rip), %rdx
	mov	%rsp, %rcx
	sub	%fs:LAYOUT_HOT_BELOW(%rdx), %rcx
	lea	(%rdi, %rcx), %eax
	xor	%esi, %eax
	and	%fs:LAYOUT_HOT_CACHE_MASK(%rdx), %eax	/* before the cache */
	add	%fs:LAYOUT_HOT_CACHE(%rdx), %rax
	mov	(%rax), %r8
	cmp	LAYOUT_NODE_FUNCTION(%r8), %rdi
	jne	1f
	mov	LAYOUT_NODE_PARENT(%r8), %rax
	cmp	%rcx, LAYOUT_NODE_FRAME(%rax)
	jb	1f
	cmpxchg	%r8, %fs:LAYOUT_HOT_CURRENT(%rdx)
	jne	1f
	mov	%rcx, LAYOUT_NODE_FRAME(%r8)
	incq	LAYOUT_NODE_CALLS(%r8)
	ret
	.org	tree_counts_enter + 64, 0xcc	/* an error, were it more */
1:	mov	%fs:LAYOUT_HOT_CURRENT(%rdx), %rcx
	lea	8(%rsp), %rdx
	xor	%r8d, %r8d
	jmp	tree_enter_missed
	.cfi_endproc
	.size	tree_counts_enter, .-tree_counts_enter

	.section .note.GNU-stack, "", @progbits
