/* Waits in a function of assembly code, whose symbol has neither a size nor a type, and which
 * no table for unwinding describes. */
#include <stdio.h>
#include <unistd.h>

void sizeless(void);

__attribute__((noinline, used)) static void in_front(void)
{
	pause();
}

__asm__(".text\n"
	"sizeless:\n"
	"	sub $8, %rsp\n"
	"	call pause@PLT\n"
	"	add $8, %rsp\n"
	"	ret\n"
	".globl sizeless\n");

int main(void)
{
	puts("ready");
	fflush(stdout);
	sizeless();
	in_front();
	return 0;
}
