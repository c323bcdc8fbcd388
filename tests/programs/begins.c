/*
 * The state that main and a constructor find when they are called.
 *
 * OLD: the program contains the start code that was linked in before glibc 2.34, which
 * uses another version of __libc_start_main and passes it an init function.  FLAG, in
 * the environment: the offset of a byte in the object with the hooks; the program
 * prints this byte at each step.
 *
 * tree:
 *	construct 1
 *	main 1
 *	main;leaf 1
 */
#define _GNU_SOURCE
#include "truth.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdlib.h>

#ifdef OLD
__asm__(".symver __libc_start_main, __libc_start_main@GLIBC_2.2.5\n"
	"	.globl	_start\n"
	"_start:	xor	%ebp, %ebp\n"
	"	mov	%rdx, %r9\n"		/* rtld_fini */
	"	pop	%rsi\n"			/* argc */
	"	mov	%rsp, %rdx\n"		/* argv */
	"	and	$-16, %rsp\n"
	"	push	%rax\n"
	"	push	%rsp\n"			/* stack_end */
	"	xor	%r8d, %r8d\n"		/* fini */
	"	lea	init(%rip), %rcx\n"
	"	lea	main(%rip), %rdi\n"
	"	call	*__libc_start_main@GOTPCREL(%rip)\n"
	"	hlt\n");

void init(int count, char **arguments, char **environment);
#define CONSTRUCTOR
#else
#define CONSTRUCTOR __attribute__((constructor))
#endif

QUIET static void print_flag(const char *where)
{
	const char *offset = getenv("FLAG");
	void *hook = dlsym(RTLD_DEFAULT, "__cyg_profile_func_enter");
	Dl_info info;

	if (offset && dladdr(hook, &info))
		printf("flag in %s %d\n", where,
		       ((char *)info.dli_fbase)[strtoul(offset, NULL, 0)]);
}

CONSTRUCTOR APART static void construct(void)
{
	COUNTED;
	print_flag("constructor");
}

#ifdef OLD
QUIET void init(int count, char **arguments, char **environment)
{
	printf("init %d %d %d\n", count, arguments[count] == NULL,
	       environment == environ);
	construct();
}
#endif

static APART void leaf(void)
{
	COUNTED;
}

int main(int count, char **arguments, char **environment)
{
	void *frames[64];

	COUNTED;
	leaf();
	print_flag("main");
	for (int i = 1; i <= count; i++)
		printf("argument %s\n", arguments[i] ? arguments[i] : "none");
	printf("environment %d\n", environment == environ);
	printf("above main %ld bytes, %d frames\n",
	       (long)((char *)arguments - (char *)__builtin_frame_address(0)),
	       backtrace(frames, 64));
	fflush(stdout);
	print_counts();
	return 40 + count;
}
