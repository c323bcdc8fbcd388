/*
 * Recursion may go hundreds of thousands deep.
 *
 * depth: 2
 * tree:
 *	main 1
 *	run 1
 *	run;down 200000
 */
#include "truth.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#define DEPTH 200000

static APART int down(int n)
{
	COUNTED;
	return n > 1 ? down(n - 1) + 1 : 1;
}

static void *run(void *argument)
{
	COUNTED;
	if (down(DEPTH) != DEPTH)
		print_text("wrong\n");
	return argument;
}

int main(void)
{
	size_t size = 1ul << 30;
	void *stack = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	pthread_attr_t attributes;
	pthread_t thread;

	COUNTED;
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, stack, size);
	if (stack == MAP_FAILED ||
	    pthread_create(&thread, &attributes, run, NULL))
		print_text("no stack\n");
	else
		pthread_join(thread, NULL);
	print_counts();
	return 0;
}
