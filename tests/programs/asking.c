/*
 * Fast hooks that ask about one function: asking PROFILERS, where PROFILERS is 1, or 2
 * with a second profiler.  Every call raises the hooks, and calls of `chosen` are
 * reported with their argument, also in a signal handler that interrupts an inquiry.
 * Every wrong answer is one line.
 */
#define _GNU_SOURCE
#include <shim/hooks.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_set_enter_leave_function_hooks3
#pragma weak shim_profiler_set_deferred_hook
#pragma weak shim_hook_defer
#pragma weak shim_get_function_enter3_info

#define QUIETLY __attribute__((no_instrument_function))
#define CALLED	__attribute__((noinline))

static volatile long sink;
int enters;
static int leaves, asked, others, right, nothing;
static int expected;
static int in_handler, interrupts;
static int both;

int chosen(int a, long b);

CALLED int chosen(int a, long b)
{
	sink = a;	/* each must keep its incoming value */
	sink = b;
	return 0;
}

CALLED static int other(int a)
{
	return (int)(sink = a * 3);
}

CALLED static void handler(int number)
{
	(void)number;
	in_handler++;
	chosen(-1, -1);
	other(1);
	in_handler--;
}

QUIETLY static int is_chosen(shim_function function)
{
	return function == (shim_function)chosen;
}

QUIETLY static void ask(shim_function function, const void *site,
			uintptr_t frame, shim_elt_info info)
{
	static union {
		struct shim_argument_info info;
		unsigned char bytes[256];
	} buffer;
	uint32_t size = sizeof(buffer);

	enters += both;
	if (!is_chosen(function)) {
		others++;
		if (!both)
			printf("asked for another function\n");
		return;
	}
	asked++;
	if (!site || frame <= (uintptr_t)__builtin_frame_address(0))
		printf("site %p, frame %#lx\n", site, (long)frame);
	if (in_handler || !info) {
		nothing++;
		if (info && interrupts)
			printf("may ask in a handler of a hook that asks\n");
		return;
	}
	if (interrupts > 0) {
		interrupts--;
		raise(SIGUSR1);
		interrupts++;
	}
	if (shim_get_function_enter3_info(function, info, NULL, &size,
					  &buffer.info) != SHIM_OK ||
	    buffer.info.ranges_count != 2 || buffer.info.ranges[0].start == 0 ||
	    buffer.info.ranges[1].start == 0)
		printf("no arguments\n");
	else if (*(int *)buffer.info.ranges[0].start != expected ||
		 *(long *)buffer.info.ranges[1].start != expected * 3L)
		printf("%d, not %d\n", *(int *)buffer.info.ranges[0].start,
		       expected);
	else
		right++;
}

/* The last instruction is a jump, even in programs without optimization. */
__asm__("	.globl	enter\n"
	"	.type	enter, @function\n"
	"enter:\n"
	"	incl	enters(%rip)\n"
	"	lea	chosen(%rip), %rax\n"
	"	cmp	%rax, %rdi\n"
	"	jne	1f\n"
	"	jmp	*ask_it(%rip)\n"
	"1:	ret\n"
	"	.size	enter, .-enter\n");
void enter(shim_function function, const void *site);
void (*ask_it)(shim_function function, const void *site);

QUIETLY static void leave(union shim_function_or_client function)
{
	(void)function;
	leaves++;
}

QUIETLY static void ignore(union shim_function_or_client function)
{
	(void)function;
}

__attribute__((constructor)) QUIETLY static void start(int argc, char **argv)
{
	struct shim_profiler_handle *handle;

	if (!shim_profiler_create || argc < 2)
		return;
	both = argv[1][0] == '2';
	ask_it = shim_hook_defer;
	handle = shim_profiler_create(NULL);
	shim_profiler_set_enter_leave_function_hooks3(handle, SHIM_SITE_HOOK(enter),
					     leave, NULL);
	shim_profiler_set_deferred_hook(handle, ask);
	if (both)
		shim_profiler_set_enter_leave_function_hooks3(shim_profiler_create(NULL),
						     ignore, ignore, NULL);
}

int main(void)
{
	signal(SIGUSR1, handler);
	for (int i = 0; i < 100; i++) {
		expected = i;
		chosen(i, i * 3L);
		other(i);
	}
	interrupts = 1;
	expected = 7;
	chosen(7, 21);
	enters--; /* of main, which has not returned */
	printf("enters %d leaves %d asked %d right %d nothing %d others %d\n",
	       enters, leaves, asked, right, nothing, others);
	return 0;
}
