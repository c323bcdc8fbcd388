/*
 * Measures how far hooks write below an instrumented function's stack: prints "fast N",
 * "path N" (a new path, or a tick of the coarse clock) and "first N" (a thread's first call).
 */
#define _GNU_SOURCE
#include "truth.h"

#include <pthread.h>
#include <stdint.h>

#define DEPTH 16384
#define PAINT 0xa5a5a5a5a5a5a5a5ull

extern void __cyg_profile_func_enter(void *function, void *site);
extern void __cyg_profile_func_exit(void *function, void *site);

static unsigned long first;

/* Paints the stack below its frame, calls both hooks, and returns how many
 * bytes below the stack pointer of the call were changed. */
QUIET static __attribute__((noinline)) unsigned long measure(void *function,
							     int enters)
{
	unsigned long used;

#ifdef __aarch64__
	__asm__ volatile(
		"mov x19, sp\n\t"
		"sub x20, x19, #256\n\t"
		"mov sp, x20\n\t"
		"sub x9, x20, %[depth]\n\t"
		"1: str %[paint], [x9], #8\n\t"
		"cmp x9, x20\n\t"
		"b.ne 1b\n\t"
		"mov x21, %[paint]\n\t"
		"mov x0, %[function]\n\t"
		"mov x1, #0\n\t"
		"cbz %w[enters], 2f\n\t"
		"bl __cyg_profile_func_enter\n\t"
		"b 3f\n\t"
		"2: bl __cyg_profile_func_exit\n\t"
		"3: sub x9, x20, %[depth]\n\t"
		"4: ldr x10, [x9], #8\n\t"
		"cmp x10, x21\n\t"
		"ccmp x9, x20, #4, eq\n\t"
		"b.ne 4b\n\t"
		"sub x9, x9, #8\n\t"
		"sub %[used], x20, x9\n\t"
		"mov sp, x19\n\t"
		: [used] "=&r"(used)
		: [depth] "i"(DEPTH), [paint] "r"(PAINT),
		  [function] "r"(function), [enters] "r"(enters)
		: "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9",
		  "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18",
		  "x19", "x20", "x21", "x30", "memory", "cc");
#else
	__asm__ volatile(
		"mov %%rsp, %%rbx\n\t"
		"sub $256, %%rsp\n\t"
		"and $-16, %%rsp\n\t"
		"mov %%rsp, %%r12\n\t"
		"lea -%c[depth](%%rsp), %%rdi\n\t"
		"mov $%c[words], %%ecx\n\t"
		"mov %[paint], %%rax\n\t"
		"rep stosq\n\t"
		"mov %[function], %%rdi\n\t"
		"xor %%esi, %%esi\n\t"
		"test %[enters], %[enters]\n\t"
		"jz 1f\n\t"
		"call __cyg_profile_func_enter@plt\n\t"
		"jmp 2f\n\t"
		"1: call __cyg_profile_func_exit@plt\n\t"
		"2: mov %%r12, %%rsp\n\t"
		"lea -%c[depth](%%rsp), %%rdi\n\t"
		"mov $%c[words], %%ecx\n\t"
		"mov %[paint], %%rax\n\t"
		"repe scasq\n\t"
		"lea -8(%%rdi), %%rdi\n\t"
		"mov %%rsp, %%rax\n\t"
		"sub %%rdi, %%rax\n\t"
		"mov %%rbx, %%rsp\n\t"
		: "=&a"(used)
		: [depth] "i"(DEPTH), [words] "i"(DEPTH / 8),
		  [paint] "r"(PAINT), [function] "r"(function),
		  [enters] "r"(enters)
		: "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11",
		  "r12", "memory", "cc");
#endif
	return used;
}

QUIET static void *thread(void *function)
{
	first = measure(function, 1);
	measure(function, 0);
	return NULL;
}

QUIET static void print_number(const char *what, unsigned long number)
{
	char line[100];

	snprintf(line, sizeof(line), "%s %lu\n", what, number);
	print_text(line);
}

QUIET static unsigned long larger(unsigned long a, unsigned long b)
{
	return a > b ? a : b;
}

static APART void known(void)
{
	COUNTED;
}

int main(void)
{
	unsigned long fast = 0, path = 0;
	pthread_t second;
	char *code = (char *)(uintptr_t)known;

	COUNTED;
	/* Binds the hooks, whichever object has them. */
	measure(code, 1);
	measure(code, 0);
	for (int i = 0; i < 1000; i++) {
		unsigned long enter = DEPTH, leave = DEPTH, used;

		/* The coarse clock may tick in a call, but not in each of three. */
		for (int again = 0; again < 3; again++) {
			used = measure(code, 1);
			enter = used < enter ? used : enter;
			path = larger(path, used);
			used = measure(code, 0);
			leave = used < leave ? used : leave;
			path = larger(path, used);
		}
		fast = larger(fast, larger(enter, leave));
	}
	/* Far more paths than fit into the first file. */
	for (int i = 0; i < 20000; i++) {
		path = larger(path, measure(code + i, 1));
		path = larger(path, measure(code + i, 0));
	}
	pthread_create(&second, NULL, thread, code);
	pthread_join(second, NULL);
	print_number("fast", fast);
	print_number("path", path);
	print_number("first", first);
	return 0;
}
