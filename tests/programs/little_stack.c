/*
 * Calls with little stack: 16 KiB of a thread, of a coroutine, of a signal handler, and
 * of a task that libc does not know.  The memory beside each stack must not change.
 * With LITTLE, a coroutine of so many bytes only.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define QUIET __attribute__((no_instrument_function))
#define APART __attribute__((noinline))
#ifdef LITTLE
#define SIZE LITTLE
#else
#define SIZE 16384
#endif
#define BELOW (1u << 20)

static volatile int sink;

APART static int add(int a, int b)
{
	return a + b + sink;
}

APART static void work(void)
{
	for (int i = 0; i < 5; i++)
		sink = add(i, sink);
}

/* Makes a stack of @SIZE bytes, with guarded memory below it. */
QUIET static char *make_stack(void)
{
	char *memory = mmap(NULL, BELOW + SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		exit(1);
	memset(memory, 0x5a, BELOW);
	return memory + BELOW;
}

QUIET static void check_stack(const char *name, const char *stack)
{
	size_t touched = 0;

	for (long i = 1; i <= (long)BELOW; i++)
		touched += stack[-i] != 0x5a;
	printf("%s: %s\n", name, touched ? "overrun" : "fine");
	munmap((char *)stack - BELOW, BELOW + SIZE);
}

QUIET static void *run_thread(void *unused)
{
	work();
	return unused;
}

QUIET static void in_thread(void)
{
	char *stack = make_stack();
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, stack, SIZE);
	if (pthread_create(&thread, &attributes, run_thread, NULL) != 0)
		exit(2);
	pthread_join(thread, NULL);
	check_stack("thread", stack);
}

static ucontext_t here, there;

QUIET static void run_coroutine(void)
{
	work();
}

QUIET static void in_coroutine(void)
{
	char *stack = make_stack();

	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = SIZE;
	there.uc_link = &here;
	makecontext(&there, run_coroutine, 0);
	swapcontext(&here, &there);
	check_stack("coroutine", stack);
}

QUIET static void handle(int signal)
{
	(void)signal;
	work();
}

QUIET static void in_handler(void)
{
	struct sigaction action = { .sa_handler = handle,
				    .sa_flags = SA_ONSTACK };
	stack_t stack = { .ss_sp = make_stack(), .ss_size = SIZE };
	stack_t none = { .ss_flags = SS_DISABLE };

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	sigaltstack(&none, NULL);
	check_stack("handler", stack.ss_sp);
}

static int alive;

QUIET static int run_task(void *unused)
{
	(void)unused;
	work();
	return 0;
}

/* The task uses the caller's thread-local data, errno as well: no call here sets it. */
QUIET static void in_task(void)
{
	char *stack = make_stack();

	alive = 1;
	clone(run_task, stack + SIZE,
	      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
		      CLONE_SYSVSEM | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID,
	      NULL, NULL, NULL, &alive);
	work();
	while (__atomic_load_n(&alive, __ATOMIC_ACQUIRE))
		__asm__ volatile("");
	check_stack("task", stack);
}

int main(void)
{
	in_coroutine();
#ifndef LITTLE
	in_thread();
	in_handler();
	in_task();
#endif
	return sink > 0 ? 5 : 6;
}
