/* Refers to many functions that shim interposes, and calls none of them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

static jmp_buf buffer;
static ucontext_t context;

int main(int count, char **arguments)
{
	if (count < 100)
		return 0;
	if (setjmp(buffer) == 0)
		longjmp(buffer, 1);
	makecontext(&context, abort, 0);
	swapcontext(&context, &context);
	dlclose(arguments);
	if (count == 101)
		quick_exit(1);
	if (vfork() == 0)
		_exit(1);
	clone(NULL, NULL, 0, NULL);
	prctl(0);
	return (int)syscall(0);
}
