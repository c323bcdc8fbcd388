/*
 * Functions that fault at their first instructions; the handler of the signal prints who
 * has called them, by backtrace() and by _Unwind_Backtrace(), and faults itself once.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

static sigjmp_buf place;
static int depth;

int loads(const int *p);
int pushes(const int *p);
int aligns(const int *p);
int try_it(int (*function)(const int *));

__asm__(".text\n"
	".globl loads, pushes, aligns\n"
	".type loads, @function\n"
	"loads: .cfi_startproc\n"
	"	mov (%rdi), %eax\n"
	"	add $1, %eax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size loads, .-loads\n"
	".type pushes, @function\n"
	"pushes: .cfi_startproc\n"
	"	push %rbx\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbx, -16\n"
	"	mov (%rdi), %ebx\n"
	"	mov %ebx, %eax\n"
	"	pop %rbx\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size pushes, .-pushes\n"
	".type aligns, @function\n"
	"aligns: .cfi_startproc\n"
	"	mov %rsp, %r10\n"
	"	.cfi_def_cfa %r10, 8\n"
	"	push %rbp\n"
	"	.cfi_offset %rbp, -16\n"
	"	xor %ebp, %ebp\n"
	"	mov (%rdi), %eax\n"
	"	pop %rbp\n"
	"	.cfi_restore %rbp\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size aligns, .-aligns\n");

static void print_name(void *address)
{
	Dl_info info;

	if (dladdr(address, &info) && info.dli_sname)
		printf(" %s+%zu", info.dli_sname,
		       (size_t)address - (size_t)info.dli_saddr);
	else
		printf(" ?");
}

static _Unwind_Reason_Code print_frame(struct _Unwind_Context *context,
				       void *unused)
{
	(void)unused;
	print_name((void *)_Unwind_GetIP(context));
	return _URC_NO_REASON;
}

static void handler(int number)
{
	void *frames[64];
	int count;

	(void)number;
	if (++depth == 1) {
		sigset_t set;

		sigemptyset(&set);
		sigaddset(&set, SIGSEGV);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		loads(NULL);
	}
	count = backtrace(frames, 64);
	for (int i = 0; i < count; i++)
		print_name(frames[i]);
	printf("\n");
	_Unwind_Backtrace(print_frame, NULL);
	printf("\n");
	siglongjmp(place, 1);
}

__attribute__((noinline)) int try_it(int (*function)(const int *))
{
	int result = function(NULL);

	__asm__ volatile("");
	return result + 1;
}

int main(void)
{
	int (*const functions[])(const int *) = { loads, pushes, aligns };
	static volatile int i;

	signal(SIGSEGV, handler);
	for (i = 0; i < 3; i++) {
		depth = 0;
		if (sigsetjmp(place, 1) == 0)
			try_it(functions[i]);
	}
	return 0;
}
