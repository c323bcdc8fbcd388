/*
 * A program's own malloc may be instrumented, and may fail.
 *
 * libc and the loader may call malloc as they like: the test compares only calls that
 * the program makes, and all calls are counted.
 *
 * flags: -fno-builtin
 * tree:
 *	main 1
 *	main;work 100
 *	main;work;malloc 100
 *	main;work;malloc;take 100
 *	main;work;calloc 100
 *	main;work;calloc;malloc 100
 *	main;work;calloc;malloc;take 100
 *	main;work;realloc 100
 *	main;work;realloc;malloc 100
 *	main;work;realloc;malloc;take 100
 *	main;work;free 300
 *	main;empty 1
 *	main;empty;malloc 10
 *	main;empty;malloc;take 10
 *	*
 */
#include "truth.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static char memory[16 << 20] __attribute__((aligned(64)));
static size_t used;
static volatile int is_empty;

static APART void *take(size_t size)
{
	size_t at;

	COUNTED;
	size = (size + 31) & ~(size_t)15;
	at = __atomic_fetch_add(&used, size, __ATOMIC_RELAXED);
	if (is_empty || at + size > sizeof(memory)) {
		errno = ENOMEM;
		return NULL;
	}
	*(size_t *)(memory + at) = size - 16;
	return memory + at + 16;
}

APART void *malloc(size_t size)
{
	COUNTED;
	return take(size);
}

APART void free(void *pointer)
{
	COUNTED;
	(void)pointer;
}

APART void *calloc(size_t count, size_t size)
{
	void *(*volatile get)(size_t) = malloc;

	COUNTED;
	return get(count * size); /* never used twice, so it is zero */
}

APART void *realloc(void *pointer, size_t size)
{
	void *(*volatile get)(size_t) = malloc;
	void *copy;

	COUNTED;
	copy = get(size);
	if (pointer && copy)
		memcpy(copy, pointer,
		       size < ((size_t *)pointer)[-2] ? size :
							((size_t *)pointer)[-2]);
	return copy;
}

static APART void work(void)
{
	void *volatile a, *volatile b;

	COUNTED;
	a = malloc(10);
	b = calloc(3, 5);
	free(b);
	b = realloc(a, 100);
	free(a);
	free(b);
}

static APART void empty(void)
{
	COUNTED;
	is_empty = 1;
	for (int i = 0; i < 10; i++) {
		void *volatile p = malloc(1);

		if (p)
			print_text("wrong\n");
	}
	is_empty = 0;
}

static void *worker(void *argument)
{
	COUNTED;
	work();
	return argument;
}

int main(void)
{
	pthread_t thread;

	COUNTED;
	for (int i = 0; i < 100; i++)
		work();
	empty();
	pthread_create(&thread, NULL, worker, NULL);
	pthread_join(thread, NULL);
	print_counts();
	_exit(0);
}
