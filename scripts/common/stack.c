/*
 * Runs the program on a larger stack, and gives threads larger stacks, because libdw
 * takes 100 KiB in one frame.  The shell's limit may be lower, and must not change for
 * the profiled program.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common/stack.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

/* libdw's functions take 100 KiB in one frame. */
#define ENOUGH (1ul << 20)
#define SIZE \
	(8ul << 20) /* the shell's usual limit; most pages are never touched */

/* The arguments of the function on the new stack, which receives no pointers. */
static struct {
	int (*run)(int argc, char **argv);
	int argc;
	char **argv;
	int result;
} call;

static void run_call(void)
{
	call.result = call.run(call.argc, call.argv);
}

static void enlarge_threads(void)
{
	pthread_attr_t attributes;

	if (pthread_attr_init(&attributes) != 0)
		return;
	if (pthread_attr_setstacksize(&attributes, ENOUGH) == 0)
		pthread_setattr_default_np(&attributes);
	pthread_attr_destroy(&attributes);
}

int stack_call(int (*run)(int argc, char **argv), int argc, char **argv)
{
	ucontext_t before, there;
	struct rlimit limit;
	void *memory;

	if (getrlimit(RLIMIT_STACK, &limit) < 0 || limit.rlim_cur >= ENOUGH)
		return run(argc, argv);
	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK,
		      -1, 0);
	if (memory == MAP_FAILED || getcontext(&there) < 0)
		return run(argc, argv);
	enlarge_threads();
	call.run = run;
	call.argc = argc;
	call.argv = argv;
	there.uc_stack.ss_sp = memory;
	there.uc_stack.ss_size = SIZE;
	there.uc_link = &before;
	makecontext(&there, run_call, 0);
	if (swapcontext(&before, &there) < 0)
		return run(argc, argv);
	return call.result;
}
