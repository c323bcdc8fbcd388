/*
 * A program with an allocator of its own that counts all of its callers: shim may not
 * be one of them.  The program does everything once that makes shim work: threads, a
 * fork, an object that is opened, a failing symbol lookup, sleeps.
 *
 * The optional first argument is a library to open.
 */
#include "truth.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

static char memory[64 << 20] __attribute__((aligned(64)));
static size_t used;
static unsigned long mallocs, callocs, reallocs, aligned, frees;

QUIET static void add_one(unsigned long *count)
{
	__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

QUIET static void *take(size_t size, size_t alignment)
{
	size_t at = __atomic_fetch_add(&used, size + 16 + alignment,
				       __ATOMIC_RELAXED);
	char *block = memory + ((at + 16 + alignment - 1) & ~(alignment - 1));

	if (at + size + 16 + alignment > sizeof(memory)) {
		errno = ENOMEM;
		return NULL;
	}
	((size_t *)block)[-1] = size;
	return block;
}

QUIET void *malloc(size_t size)
{
	add_one(&mallocs);
	return take(size, 16);
}

/* libc frees as many NULLs for a thread as there are objects with thread-local data. */
QUIET void free(void *pointer)
{
	if (pointer)
		add_one(&frees);
}

QUIET void *calloc(size_t count, size_t size)
{
	add_one(&callocs);
	return take(count * size, 16);
}

QUIET void *realloc(void *pointer, size_t size)
{
	char *copy = take(size, 16), *from = pointer;
	size_t old = from ? ((size_t *)pointer)[-1] : 0;

	add_one(&reallocs);
	for (size_t i = 0; copy && i < old && i < size; i++)
		copy[i] = from[i];
	return copy;
}

QUIET void *aligned_alloc(size_t alignment, size_t size)
{
	add_one(&aligned);
	return take(size, alignment < 16 ? 16 : alignment);
}

QUIET void *memalign(size_t alignment, size_t size);
QUIET void *memalign(size_t alignment, size_t size)
{
	return aligned_alloc(alignment, size);
}

QUIET int posix_memalign(void **pointer, size_t alignment, size_t size)
{
	*pointer = aligned_alloc(alignment, size);
	return *pointer ? 0 : ENOMEM;
}

static APART void leaf(void)
{
	__asm__ volatile("");
}

static void *work(void *argument)
{
	struct timespec nap = { 0, 2000000 };

	for (int i = 0; i < 1000; i++)
		leaf();
	nanosleep(&nap, NULL);
	return argument;
}

static void open_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);

	if (library && !dlsym(library, "nothing"))
		print_text(dlerror() ? "no symbol\n" : "no text\n");
	if (library)
		dlclose(library);
}

QUIET static void say(const char *when)
{
	char line[200];

	snprintf(line, sizeof(line),
		 "%s: malloc %lu calloc %lu realloc %lu aligned %lu free %lu\n",
		 when, mallocs, callocs, reallocs, aligned, frees);
	print_text(line);
}

static __attribute__((destructor)) void finish(void)
{
	say("end");
}

int main(int count, char **arguments)
{
	pthread_t thread;

	say("main");
	work(NULL);
	for (int i = 0; i < 3; i++) {
		pthread_create(&thread, NULL, work, NULL);
		pthread_join(thread, NULL);
	}
	if (fork() == 0) {
		work(NULL);
		_exit(0);
	}
	wait(NULL);
	if (count > 1)
		open_library(arguments[1]);
	print_text(dlopen("/nothing", RTLD_NOW) ? "opened\n" : "not opened\n");
	leaf();
	print_text(dlerror() ? "a text\n" : "no text\n");
	return 0;
}
