/*
 * Prints which marks its functions have.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

__attribute__((noinline)) static void marked(void)
{
	__asm__ volatile("");
}

__attribute__((noinline, no_instrument_function)) static void unmarked(void)
{
	__asm__ volatile("");
}

int main(void)
{
	int (*ask)(uintptr_t, int *) = (int (*)(uintptr_t, int *))dlsym(
		RTLD_DEFAULT, "shim_function_source");
	void (*const functions[])(void) = { marked, unmarked };

	marked();
	unmarked();
	for (int i = 0; ask && i < 2; i++) {
		int source = -1, result = ask((uintptr_t)functions[i], &source);

		printf("%d %d\n", result, source);
	}
	return 0;
}
