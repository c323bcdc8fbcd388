/*
 * Calls instrumented functions wherever a program can hold locks of libc or of the
 * loader, or be in malloc: a hook that takes one of these locks never returns.
 *
 * held LIBRARY     the shared object that held_library.c is compiled into
 */
#define _GNU_SOURCE
#include "truth.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

APART int in_allocator(int n)
{
	COUNTED;
	return n + 1;
}

APART int in_stream(int n)
{
	COUNTED;
	return n + 1;
}

APART int in_headers(int n)
{
	COUNTED;
	return n + 1;
}

APART int in_fork(int n)
{
	COUNTED;
	return n + 1;
}

APART int in_once(int n)
{
	COUNTED;
	return n + 1;
}

APART int in_key(int n)
{
	COUNTED;
	return n + 1;
}

APART int in_exit(int n)
{
	COUNTED;
	return n + 1;
}

static volatile int sink;

/* The program's own malloc, with a lock. */
static char room[1 << 20];
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int is_counting;

QUIET void *malloc(size_t size)
{
	void *memory = NULL;

	pthread_mutex_lock(&lock);
	if (is_counting)
		sink = in_allocator(1);
	size = (size + 31) & ~(size_t)15;
	if (used + size <= sizeof(room)) {
		*(size_t *)(room + used) = size - 16;
		memory = room + used + 16;
		used += size;
	}
	pthread_mutex_unlock(&lock);
	return memory;
}

QUIET void free(void *memory)
{
	(void)memory;
}

QUIET void *calloc(size_t count, size_t size)
{
	return malloc(count * size);	/* never used before, so it is zero */
}

QUIET void *realloc(void *old, size_t size)
{
	char *memory = malloc(size);
	size_t before = old ? ((size_t *)old)[-2] : 0;

	for (size_t i = 0; memory && i < before && i < size; i++)
		memory[i] = ((char *)old)[i];
	return memory;
}

QUIET static ssize_t write_stream(void *unused, const char *text, size_t size)
{
	(void)unused, (void)text;
	sink = in_stream(1);
	return (ssize_t)size;
}

QUIET static int look_at_header(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info, (void)size, (void)data;
	sink = in_headers(1);
	return 1;	/* one is enough */
}

QUIET static void around_fork(void)
{
	sink = in_fork(1);
}

QUIET static void only_once(void)
{
	sink = in_once(1);
}

QUIET static void end_of_key(void *unused)
{
	(void)unused;
	sink = in_key(1);
}

QUIET static void at_exit(void)
{
	sink = in_exit(1);
	print_counts();
}

QUIET static void *use_key(void *key)
{
	pthread_setspecific(*(pthread_key_t *)key, "x");
	return NULL;
}

QUIET static void use_stream(void)
{
	static const cookie_io_functions_t functions = { .write = write_stream };
	FILE *stream = fopencookie(NULL, "w", functions);

	setvbuf(stream, NULL, _IONBF, 0);
	fputs("x", stream);
	fclose(stream);
}

QUIET static void use_fork(void)
{
	/* Called before the fork, and after it in the parent. */
	pthread_atfork(around_fork, around_fork, NULL);
	if (fork() == 0)
		_exit(0);
}

QUIET int main(int argc, char **argv)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	/* Keeps compilers from removing calls of malloc. */
	void *(*volatile allocate)(size_t) = malloc;
	pthread_key_t key;
	pthread_t thread;
	void *library;

	if (argc < 2)
		return 1;
	atexit(at_exit);
	is_counting = 1;
	sink = allocate(100) == NULL;
	is_counting = 0;
	use_stream();
	dl_iterate_phdr(look_at_header, NULL);
	pthread_once(&once, only_once);
	pthread_key_create(&key, end_of_key);
	pthread_create(&thread, NULL, use_key, &key);
	pthread_join(thread, NULL);
	library = dlopen(argv[1], RTLD_NOW);
	if (!library)
		return 2;
	dlclose(library);
	use_fork();
	return 0;
}
