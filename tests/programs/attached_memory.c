/*
 * attached_memory: a program to attach to that has many blocks by then.
 *
 * Each line of standard input makes the next step: it releases half of its blocks and
 * changes the size of 10 others; it releases the rest; it ends.
 */
#include <stdio.h>
#include <stdlib.h>

#define BLOCKS 1000

static void *blocks[BLOCKS];

__attribute__((noinline)) static void release(int from, int to)
{
	for (int i = from; i < to; i++)
		free(blocks[i]);
}

__attribute__((noinline)) static void await(void)
{
	int c;

	do
		c = getchar();
	while (c != '\n' && c != EOF);
}

int main(void)
{
	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = malloc(100);
	puts("ready");
	fflush(stdout);
	await();
	release(0, BLOCKS / 2);
	for (int i = BLOCKS / 2; i < BLOCKS / 2 + 10; i++)
		blocks[i] = realloc(blocks[i], 5000);
	puts("half");
	fflush(stdout);
	await();
	release(BLOCKS / 2, BLOCKS);
	puts("all");
	fflush(stdout);
	await();
	puts("wrong 0 interrupted 0");
	return 0;
}
