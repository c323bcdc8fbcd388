/*
 * Has its own malloc, and prints how often threads reach it while they call a function that
 * does not: shim or the loader would wait there for a lock that the thread may hold.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE	(8u << 20)
#define THREADS 4

static char memory[SIZE] __attribute__((aligned(64)));
static size_t used;
static __thread int is_calling;
static int times;

__attribute__((no_instrument_function)) void *malloc(size_t size)
{
	size_t at = __atomic_fetch_add(&used, (size + 127) & ~(size_t)63,
				       __ATOMIC_RELAXED);

	if (is_calling)
		__atomic_fetch_add(&times, 1, __ATOMIC_RELAXED);
	if (at + size + 64 > SIZE)
		return NULL;
	*(size_t *)(void *)(memory + at) = size;
	return memory + at + 64;
}

__attribute__((no_instrument_function)) void free(void *block)
{
	(void)block;
}

__attribute__((no_instrument_function)) void *calloc(size_t count, size_t size)
{
	return malloc(count * size);
}

__attribute__((no_instrument_function)) void *realloc(void *block, size_t size)
{
	void *moved = malloc(size);
	size_t before = block ? *(size_t *)(void *)((char *)block - 64) : 0;

	if (moved)
		memcpy(moved, block ? block : "",
		       before < size ? before : size);
	return moved;
}

__attribute__((noinline)) static int first(int a, const char *text)
{
	return a + text[0];
}

__attribute__((noinline)) static int second(const char *text, double b)
{
	return text[0] + (int)b;
}

__attribute__((noinline)) static int third(struct timespec *time, long c)
{
	return time ? 1 : (int)c;
}

__attribute__((no_instrument_function)) static void *work(void *number)
{
	int sum;

	is_calling = 1;
	sum = (intptr_t)number % 3 == 0 ? first(1, "a") :
	      (intptr_t)number % 3 == 1 ? second("b", 2) :
					  third(NULL, 3);
	is_calling = 0;
	return (void *)(intptr_t)sum;
}

__attribute__((no_instrument_function)) int main(void)
{
	pthread_t threads[THREADS];

	for (intptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%d\n", times);
	return 0;
}
