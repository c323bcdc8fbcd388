/*
 * The allocation functions of this library's namespace: they call those of libc and
 * record failures.  Without memory for a section, libdw ignores it and reports that the
 * file has no debug information.
 */
#include "inspect/debuginfo/memory.h"

#include <errno.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

/* Larger requests come from damaged files, and do not count as failures. */
#define SIZE_CREDIBLE ((size_t)1 << 30)

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

EXPORT void *malloc(size_t size);
EXPORT void *calloc(size_t count, size_t size);
EXPORT void *realloc(void *memory, size_t size);

static bool lacked;

void memory_begin(void)
{
	lacked = false;
}

bool memory_lacked(void)
{
	return lacked;
}

static void *note_failure(void *memory, size_t size)
{
	if (!memory && size > 0 && size <= SIZE_CREDIBLE)
		lacked = true;
	return memory;
}

void *malloc(size_t size)
{
	return note_failure(__libc_malloc(size), size);
}

void *calloc(size_t count, size_t size)
{
	size_t all;

	if (__builtin_mul_overflow(count, size, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	return note_failure(__libc_calloc(count, size), all);
}

void *realloc(void *memory, size_t size)
{
	return note_failure(__libc_realloc(memory, size), size);
}
