/*
 * Spends nearly all of its time in the first instructions of functions, which run elsewhere
 * if they are patched (shim/sources/moved.c).
 */
#include <time.h>

void slow(void);

/* The first instructions are slow. */
__asm__("	.text\n"
	"	.globl	slow\n"
	"	.type	slow, @function\n"
	"slow:\n"
	"	.cfi_startproc\n"
	"	push	%rbx\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_offset %rbx, -16\n"
	"	pause\n"
	"	pause\n"
	"	pop	%rbx\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	.cfi_restore %rbx\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size	slow, .-slow\n");

__attribute__((noinline)) static void middle(int count)
{
	while (count--)
		slow();
}

int main(void)
{
	while (clock() < CLOCKS_PER_SEC / 2)
		middle(1000);
	return 0;
}
