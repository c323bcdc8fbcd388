/*
 * Functions whose first instructions must stay where they are (shim/sources/unmarked.c).
 * Each returns the same however it is watched.
 */
#include <stdio.h>

#define HIDDEN __attribute__((noinline, noipa, used))

/* The first block is a jump. */
__asm__("	.text\n"
	"	.globl	hard_block\n"
	"	.type	hard_block, @function\n"
	"hard_block:\n"
	"	.cfi_startproc\n"
	"	jmp	1f\n"
	"	nop; nop; nop; nop; nop; nop\n"
	"1:	mov	$3, %eax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size	hard_block, .-hard_block\n"
	/* A call ends the first block: it returns among the first bytes. */
	"	.globl	hard_call\n"
	"	.type	hard_call, @function\n"
	"hard_call:\n"
	"	.cfi_startproc\n"
	"	push	%rax\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call	*%rdi\n"
	"	inc	%eax\n"
	"	pop	%rdx\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size	hard_call, .-hard_call\n"
	/* A loop whose first instruction is that of the function. */
	"	.globl	hard_loop\n"
	"	.type	hard_loop, @function\n"
	"hard_loop:\n"
	"	.cfi_startproc\n"
	"	sub	$1, %edi\n"
	"	test	%edi, %edi\n"
	"	jg	hard_loop\n"
	"	mov	%edi, %eax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size	hard_loop, .-hard_loop\n"
	/* A loop that begins with the second instruction. */
	"	.globl	hard_inside\n"
	"	.type	hard_inside, @function\n"
	"hard_inside:\n"
	"	.cfi_startproc\n"
	"	xor	%eax, %eax\n"
	"1:	add	%edi, %eax\n"
	"	sub	$1, %edi\n"
	"	jg	1b\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size	hard_inside, .-hard_inside\n"
	/* The same, by a table of distances right behind the function. */
	"	.globl	hard_table\n"
	"	.type	hard_table, @function\n"
	"hard_table:\n"
	"	.cfi_startproc\n"
	"	xor	%eax, %eax\n"
	"1:	add	%edi, %eax\n"
	"	sub	$1, %edi\n"
	"	js	2f\n"
	"	lea	9f(%rip), %rdx\n"
	"	mov	%edi, %ecx\n"
	"	and	$1, %ecx\n"
	"	movslq	(%rdx,%rcx,4), %rcx\n"
	"	add	%rdx, %rcx\n"
	"	jmp	*%rcx\n"
	"2:	ret\n"
	"	.cfi_endproc\n"
	"	.size	hard_table, .-hard_table\n"
	"	.p2align 2\n"
	"9:	.long	1b - 9b, 1b - 9b\n"
	/* The same, by an address in data. */
	"	.globl	hard_word\n"
	"	.type	hard_word, @function\n"
	"hard_word:\n"
	"	.cfi_startproc\n"
	"	xor	%eax, %eax\n"
	"1:	add	%edi, %eax\n"
	"	sub	$1, %edi\n"
	"	js	2f\n"
	"	jmp	*hard_word_target(%rip)\n"
	"2:	ret\n"
	"	.cfi_endproc\n"
	"	.size	hard_word, .-hard_word\n"
	"	.data\n"
	"	.p2align 3\n"
	"hard_word_target:\n"
	"	.quad	1b\n"
	"	.text\n"
	/* It takes its return address off the stack, as vfork does. */
	"	.globl	hard_popped\n"
	"	.type	hard_popped, @function\n"
	"hard_popped:\n"
	"	.cfi_startproc\n"
	"	pop	%rdx\n"
	"	mov	$7, %eax\n"
	"	push	%rdx\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size	hard_popped, .-hard_popped\n"
	/* A thunk for indirect jumps, and a jump to it from the middle of a function. */
	"	.globl	hard_thunk\n"
	"	.type	hard_thunk, @function\n"
	"hard_thunk:\n"
	"	.cfi_startproc\n"
	"	lea	1(%rdi), %edi\n"
	"	mov	%edi, %edi\n"
	"	jmp	*%rax\n"
	"	.cfi_endproc\n"
	"	.size	hard_thunk, .-hard_thunk\n"
	"	.globl	jumps\n"
	"	.type	jumps, @function\n"
	"jumps:\n"
	"	.cfi_startproc\n"
	"	push	%rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	lea	1f(%rip), %rax\n"
	"	jmp	hard_thunk\n"
	"1:	pop	%rax\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	add	%edi, %eax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size	jumps, .-jumps\n"
	/* Nobody knows where its frame is. */
	"	.globl	hard_unknown\n"
	"	.type	hard_unknown, @function\n"
	"hard_unknown:\n"
	"	push	%rbx\n"
	"	mov	$8, %eax\n"
	"	pop	%rbx\n"
	"	ret\n"
	"	.size	hard_unknown, .-hard_unknown\n");

int hard_block(void);
int hard_call(int (*)(void));
int hard_loop(int);
int hard_inside(int);
int hard_table(int);
int hard_word(int);
int hard_popped(void);
int hard_unknown(void);
int jumps(int);

HIDDEN int hard_caller(const char *start, const char *end)
{
	const char *caller = __builtin_return_address(0);

	return caller > start && caller < end;
}

static volatile int passed;

/* Its last instruction is a jump. */
HIDDEN int hard_passes(const char *start, const char *end)
{
	passed++;
	return hard_caller(start, end);
}

/* So is this one's, to that function. */
HIDDEN int hard_passes_on(const char *start, const char *end)
{
	passed--;
	return hard_passes(start, end);
}

HIDDEN int easy(int x)
{
	return x * 3 + 1;
}

int main(void)
{
	const char *start = (const char *)main;

	printf("%d %d %d %d %d\n", hard_block(), hard_loop(5), hard_inside(5),
	       hard_table(5), hard_word(5));
	printf("%d %d %d %d %d\n", hard_popped(), hard_unknown(),
	       hard_caller(start, start + 4096), hard_call(hard_block),
	       easy(4));
	printf("%d %d\n", jumps(3), hard_passes_on(start, start + 4096));
	return 0;
}
