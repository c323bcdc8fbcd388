/*
 * Prints the first byte of a function's code: before calls are switched off, after that, and
 * after they are switched on again.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

__attribute__((noinline)) static int leaf(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

static void print_code(void)
{
	printf("%02x\n", *(const unsigned char *)(void *)leaf);
}

static void call(const char *name)
{
	void (*function)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, name);

	if (function)
		function();
}

int main(void)
{
	int n = leaf(1);

	print_code();
	call("shim_hooks_disable");
	n = leaf(n);
	print_code();
	call("shim_hooks_enable");
	n = leaf(n);
	print_code();
	return n == 4 ? 0 : 1;
}
