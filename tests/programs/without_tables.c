/*
 * Compiled without exception tables: these stacks cannot be unwound.  Half of the time
 * is spent in a coroutine with a handmade stack, where tables exist but the stack does
 * not mark its end.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

#define APART __attribute__((noinline, noclone))
#define QUIET __attribute__((no_instrument_function))

static volatile double sink;

QUIET static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static APART void leaf(double seconds)
{
	for (double end = now() + seconds; now() < end;)
		for (int i = 0; i < 2000; i++)
			sink += i;
}

static APART void middle(double seconds)
{
	leaf(seconds);
	sink += 1;
}

static APART void recurse(int depth, double seconds)
{
	if (depth == 0)
		middle(seconds);
	else
		recurse(depth - 1, seconds);
	sink += 1;
}

#ifdef COROUTINE
static void *main_sp;

static APART void work(void)
{
	recurse(2, 0.4);
	sink += 1;
}

void coroutine(void);

void coroutine(void)
{
	work();
	__asm__ volatile("mov %0, %%rsp; pop %%r15; pop %%r14; pop %%r13\n\t"
			 "pop %%r12; pop %%rbp; pop %%rbx; ret"
			 :
			 : "r"(main_sp));
	__builtin_unreachable();
}

/* The memory above the coroutine's first frame leads nowhere. */
QUIET APART static void go(char *stack)
{
	__asm__ volatile("lea 1f(%%rip), %%rax; push %%rax\n\t"
			 "push %%rbx; push %%rbp; push %%r12; push %%r13\n\t"
			 "push %%r14; push %%r15; mov %%rsp, %0\n\t"
			 "mov %1, %%rsp; push $4711; jmp coroutine\n\t"
			 "1:"
			 : "=m"(main_sp)
			 : "r"(stack)
			 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10",
			   "r11", "memory");
}
#endif

int main(void)
{
#ifdef COROUTINE
	char *stack = malloc(1 << 20);

	go(stack + (1 << 20) - 64);
	free(stack);
#else
	recurse(3, 0.4);
#endif
	return 0;
}
