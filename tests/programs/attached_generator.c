/*
 * attached_generator WHERE: a program to attach to, with a coroutine.
 *
 * main has called serve, and serve itself; on its own stack the coroutine has called step, and
 * step itself.  At the attach, the coroutine waits for a line ("inside"); or main does, while
 * the coroutine is suspended in its calls ("outside") or has made none yet ("begins").
 * Afterwards each stack is used in turn, and all calls return.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define PLAIN __attribute__((no_instrument_function))
#define STACK 65536

static ucontext_t main_context, coroutine;
static const char *where;

PLAIN static void await(const char *here)
{
	char line[16];

	if (strcmp(where, here) != 0)
		return;
	puts("ready");
	fflush(stdout);
	if (read(0, line, sizeof(line)) < 0)
		puts("no line");
}

__attribute__((noinline)) static int leaf(int number)
{
	__asm__ volatile("");
	return number + 1;
}

__attribute__((noinline, optimize("no-optimize-sibling-calls"))) static int
step(int depth)
{
	volatile int number = depth;

	if (depth > 1)
		return step(depth - 1) + number;
	swapcontext(&coroutine, &main_context);
	await("inside");
	leaf(number);
	swapcontext(&coroutine, &main_context);
	return leaf(number);
}

static void generate(void)
{
	volatile int number = step(2);

	number = leaf(number);
}

__attribute__((noinline, optimize("no-optimize-sibling-calls"))) static int
serve(int depth)
{
	volatile int number = depth;

	if (depth > 1)
		return serve(depth - 1) + number;
	await("begins");
	swapcontext(&main_context, &coroutine);
	await("outside");
	swapcontext(&main_context, &coroutine);
	leaf(number);
	swapcontext(&main_context, &coroutine);
	return leaf(number);
}

int main(int argc, char **argv)
{
	where = argc > 1 ? argv[1] : "";
	getcontext(&coroutine);
	/* A mapping for itself. */
	coroutine.uc_stack.ss_sp = (char *)mmap(NULL, 3 * STACK, PROT_NONE,
						MAP_PRIVATE | MAP_ANONYMOUS,
						-1, 0) +
				   STACK;
	mprotect(coroutine.uc_stack.ss_sp, STACK, PROT_READ | PROT_WRITE);
	coroutine.uc_stack.ss_size = STACK;
	coroutine.uc_link = &main_context;
	makecontext(&coroutine, generate, 0);
	serve(2);
	puts("wrong 0 interrupted 0");
	return 0;
}
