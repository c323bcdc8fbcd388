/*
 * attached_unseen: a program to attach to, whose releases shim does not see then.
 *
 * After each line of standard input, it allocates and releases a block 10,000 times, the
 * release by free's address, which it has had since its start.  With TAKES_ADDRESS, it calls
 * free, through the slot that also has the address, and checks that this stays the same.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void (*volatile release)(void *);
static unsigned wrong;

#ifdef TAKES_ADDRESS
__attribute__((noinline)) static void *get_address(void)
{
	return free;
}
#endif

__attribute__((noinline)) static void turn(void)
{
	for (int i = 0; i < 10000; i++) {
		void *volatile block = calloc(1, 300);

#ifdef TAKES_ADDRESS
		free(block);
		wrong += release != get_address();
#else
		release(block);
#endif
	}
}

int main(void)
{
	char line[16];

#ifdef TAKES_ADDRESS
	release = get_address();
#else
	*(void **)&release = dlsym(RTLD_DEFAULT, "free");
#endif
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) && line[0] != 'e') {
		turn();
		puts("turn");
		fflush(stdout);
	}
	printf("wrong %u interrupted 0\n", wrong);
	return 0;
}
