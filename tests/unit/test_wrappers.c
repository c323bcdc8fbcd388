/*
 * The wrappers of the allocator, under other names: the test is the next allocator.
 */
#define _GNU_SOURCE
#include "dispatch/got_slots.h"
#include "edge/edge.h"
#include "heap/allocations.h"
#include "module/module.h"
#include "os/lookup.h"
#include "runtime/log.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define malloc	       test_malloc
#define calloc	       test_calloc
#define realloc	       test_realloc
#define reallocarray   test_reallocarray
#define free	       test_free
#define posix_memalign test_posix_memalign
#define aligned_alloc  test_aligned_alloc
#define memalign       test_memalign
#define valloc	       test_valloc
#define pvalloc	       test_pvalloc
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *pointer, size_t size);
void *reallocarray(void *pointer, size_t count, size_t size);
void free(void *pointer);
int posix_memalign(void **pointer, size_t alignment, size_t size);
void *aligned_alloc(size_t alignment, size_t size);
void *valloc(size_t size);
#include "../../shim/edge/allocations.c"

/* --- the next allocator, which has no memalign, valloc and pvalloc --- */

static char memory[1 << 16] __attribute__((aligned(64)));
static size_t used;
static unsigned released;
static bool is_empty, is_nested;

static void *next_malloc(size_t size)
{
	void *block = memory + used;

	if (is_nested) {
		is_nested = false;
		malloc(8);
	}
	used += (size + 63) & ~(size_t)63;
	if (is_empty || used > sizeof(memory)) {
		errno = ENOMEM;
		return NULL;
	}
	return block;
}

static void *next_calloc(size_t count, size_t size)
{
	return next_malloc(count * size);
}

static void *next_realloc(void *pointer, size_t size)
{
	(void)pointer;
	return next_malloc(size);
}

static void next_free(void *pointer)
{
	(void)pointer;
	released++;
}

static void *next_aligned(size_t alignment, size_t size)
{
	(void)alignment;
	return next_malloc(size);
}

static int next_posix(void **pointer, size_t alignment, size_t size)
{
	(void)alignment;
	*pointer = next_malloc(size);
	return *pointer ? 0 : ENOMEM;
}

/* As a loader does, it allocates memory to find a function. */
static void *of_loader[3];

void *lookup_real(const char *name)
{
	static const struct {
		const char *name;
		void *function;
	} all[] = {
		{ "malloc", (void *)next_malloc },
		{ "calloc", (void *)next_calloc },
		{ "realloc", (void *)next_realloc },
		{ "free", (void *)next_free },
		{ "aligned_alloc", (void *)next_aligned },
		{ "posix_memalign", (void *)next_posix },
	};

	if (strcmp(name, "malloc") == 0) {
		of_loader[0] = malloc(100);
		of_loader[1] = calloc(10, 10);
		of_loader[2] = malloc(5000);
		free(of_loader[1]);
	}
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (strcmp(name, all[i].name) == 0)
			return all[i].function;
	return NULL;
}

/* --- what else it needs --- */

static unsigned got, given, changed;
static size_t last_size, last_alignment;
static enum shim_allocation_kind last_kind;

void allocations_got(void *pointer, size_t size, size_t alignment,
		     enum shim_allocation_kind kind)
{
	cr_assert(ne(ptr, pointer, NULL));
	got++;
	last_size = size;
	last_alignment = alignment;
	last_kind = kind;
}

void allocations_gives(void *pointer)
{
	cr_assert(ne(ptr, pointer, NULL));
	given++;
}

void allocations_change_begins(struct allocations_change *change, void *pointer)
{
	(void)change, (void)pointer;
}

void allocations_changed(struct allocations_change *change, void *pointer,
			 size_t size)
{
	(void)change, (void)pointer, (void)size;
	changed++;
}

bool allocations_decide(bool is_last_chance)
{
	return is_last_chance;
}

bool allocations_wait_for_late(void)
{
	return false;
}

void allocations_begin_late(void)
{
}

bool allocations_raise_events(void)
{
	return false;
}

void got_slots_bypass(
	enum got_slots_family family,
	const struct got_slots_function functions[SLOTS_FUNCTIONS],
	bool is_first)
{
	(void)family, (void)functions, (void)is_first;
}

void got_slots_use_wrappers(enum got_slots_family family)
{
	(void)family;
}

void log_line(const char *format, ...)
{
	(void)format;
}

void *lookup_first(const char *name)
{
	(void)name;
	return NULL;
}

void *lookup_first_sized(const char *name, size_t *size)
{
	(void)name, (void)size;
	return NULL;
}

void *lookup_libc(const char *name)
{
	(void)name;
	return NULL;
}

bool lookup_was_attached(void)
{
	return false;
}

/* --- the tests --- */

Test(wrappers, memory_of_the_loader_is_not_the_allocators)
{
	errno = 0;
	cr_assert(ne(ptr, malloc(16), NULL));
	cr_assert(ne(ptr, of_loader[0], NULL));
	cr_assert(ne(ptr, of_loader[1], NULL));
	cr_assert(ne(ptr, of_loader[1], of_loader[0]));
	cr_expect(eq(ptr, of_loader[2], NULL));
	memset(of_loader[0], 1, 100);
	cr_expect(eq(u32, got, 1));
	/* Its size is not known. */
	cr_expect(zero(int, errno));
	cr_expect(eq(ptr, realloc(of_loader[0], 200), NULL));
	cr_expect(eq(int, errno, ENOMEM));
	free(of_loader[0]);
	cr_expect(zero(u32, changed));
	cr_expect(zero(u32, given));
	cr_expect(zero(u32, released));
}

Test(wrappers, each_function_tells_what_it_has_allocated)
{
	void *block = malloc(10);

	cr_expect(eq(u32, got, 1));
	cr_expect(eq(int, (int)last_kind, SHIM_ALLOCATION_MALLOC));
	block = realloc(block, 20);
	block = reallocarray(block, 3, 5);
	cr_expect(eq(u32, changed, 2));
	free(block);
	free(NULL);
	cr_expect(eq(u32, given, 1));
	cr_expect(eq(u32, released, 1));
	cr_expect(ne(ptr, calloc(3, 7), NULL));
	cr_expect(eq(sz, last_size, 21));
	cr_expect(eq(int, (int)last_kind, SHIM_ALLOCATION_CALLOC));
	cr_expect(ne(ptr, realloc(NULL, 30), NULL));
	cr_expect(eq(int, (int)last_kind, SHIM_ALLOCATION_REALLOC));
	cr_expect(ne(ptr, aligned_alloc(64, 128), NULL));
	cr_expect(eq(sz, last_alignment, 64));
	cr_expect(eq(int, (int)last_kind, SHIM_ALLOCATION_ALIGNED));
	cr_expect(zero(int, posix_memalign(&block, 32, 40)));
	cr_expect(eq(sz, last_alignment, 32));
	cr_expect(eq(u32, got, 5));
}

Test(wrappers, what_fails_raises_no_event_and_sets_errno)
{
	void *block = malloc(10);

	is_empty = true;
	errno = 0;
	cr_expect(eq(ptr, malloc(10), NULL));
	cr_expect(eq(int, errno, ENOMEM));
	cr_expect(eq(int, posix_memalign(&block, 32, 40), ENOMEM));
	is_empty = false;
	errno = 0;
	cr_expect(eq(ptr, reallocarray(block, SIZE_MAX / 2, 3), NULL));
	cr_expect(eq(int, errno, ENOMEM));
	errno = 0;
	cr_expect(eq(ptr, memalign(64, 10), NULL));
	cr_expect(eq(int, errno, ENOMEM));
	errno = 0;
	cr_expect(eq(ptr, valloc(10), NULL));
	cr_expect(eq(int, errno, ENOMEM));
	errno = 0;
	cr_expect(eq(ptr, pvalloc(10), NULL));
	cr_expect(eq(int, errno, ENOMEM));
	cr_expect(eq(u32, got, 1));
	cr_expect(zero(u32, changed));
}

Test(wrappers, what_the_allocator_allocates_for_itself_raises_no_event)
{
	is_nested = true;
	cr_expect(ne(ptr, malloc(10), NULL));
	cr_expect(not(is_nested));
	cr_expect(eq(u32, got, 1));
	cr_expect(eq(sz, last_size, 10));
}
