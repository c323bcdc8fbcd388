/*
 * A program that knows its own mappings and is its own profiler: it prints differences
 * from the callbacks.
 */
#define _GNU_SOURCE
#include "truth.h"

#include <shim/allocations.h>
#include <shim/mappings.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_enable_allocations
#pragma weak shim_profiler_on_mapping
#pragma weak shim_profiler_on_unmapping
#pragma weak shim_profiler_on_remapping
#pragma weak shim_profiler_on_break_moved

#define PAGE 4096ul

enum what { MAPPING = 1, UNMAPPING, REMAPPING, BREAK };

static struct told {
	enum what what;
	struct shim_mapping mapping, before;
} told[1000];
static unsigned told_count;

#define EXPECT(condition)                                                      \
	do {                                                                   \
		if (!(condition)) {                                            \
			char line[300];                                        \
			snprintf(line, sizeof(line), "wrong: %s (%d)\n",       \
				 #condition, __LINE__);                        \
			print_text(line);                                      \
		}                                                              \
	} while (0)

QUIET static struct told *note(enum what what,
			       const struct shim_mapping *mapping)
{
	struct told *next = &told[told_count++ % 1000];

	next->what = what;
	if (mapping)
		next->mapping = *mapping;
	return next;
}

QUIET static void on_mapping(struct shim_profiler *profiler,
			     const struct shim_mapping *mapping)
{
	void *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	(void)profiler;
	munmap(page, PAGE);
	note(MAPPING, mapping);
}

QUIET static void on_unmapping(struct shim_profiler *profiler,
			       const struct shim_mapping *mapping)
{
	(void)profiler;
	note(UNMAPPING, mapping);
}

QUIET static void on_remapping(struct shim_profiler *profiler,
			       const struct shim_mapping *before,
			       const struct shim_mapping *after)
{
	(void)profiler;
	note(REMAPPING, after)->before = *before;
}

QUIET static void on_break_moved(struct shim_profiler *profiler,
				 uintptr_t before, uintptr_t after)
{
	const struct shim_mapping moved = { .address = before,
					    .size = after - before };

	(void)profiler;
	note(BREAK, &moved);
}

QUIET __attribute__((constructor)) static void start(void)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	EXPECT(shim_profiler_enable_allocations(handle) == SHIM_OK);
	shim_profiler_on_mapping(handle, on_mapping);
	shim_profiler_on_unmapping(handle, on_unmapping);
	shim_profiler_on_remapping(handle, on_remapping);
	shim_profiler_on_break_moved(handle, on_break_moved);
}

QUIET static char *map(void *at, size_t pages, int more)
{
	return mmap(at, pages * PAGE - 1, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | more, -1, 0);
}

QUIET static void expect(unsigned which, enum what what, const char *address,
			 size_t pages)
{
	EXPECT(told[which].what == what);
	EXPECT(told[which].mapping.address == (uintptr_t)address);
	EXPECT(told[which].mapping.size == pages * PAGE);
}

QUIET static void parts(void)
{
	char *at = map(NULL, 9, 0);

	expect(0, MAPPING, at, 9);
	EXPECT(told[0].mapping.protection == (PROT_READ | PROT_WRITE));
	EXPECT(told[0].mapping.flags == (MAP_PRIVATE | MAP_ANONYMOUS));
	munmap(at + 2 * PAGE, 2 * PAGE);
	expect(1, UNMAPPING, at + 2 * PAGE, 2);
	/* Another mapping is there now. */
	map(at + 3 * PAGE, 2, MAP_FIXED);
	expect(2, UNMAPPING, at + 4 * PAGE, 1);
	expect(3, MAPPING, at + 3 * PAGE, 2);
	EXPECT(told[3].mapping.serial != told[0].mapping.serial);
	munmap(at, 9 * PAGE);
	EXPECT(told_count == 7);
	for (unsigned i = 4; i < 7; i++) {
		uint64_t serial = told[i].mapping.size == 2 * PAGE &&
				  told[i].mapping.address !=
					  (uintptr_t)at ? 3 : 0;

		EXPECT(told[i].what == UNMAPPING);
		EXPECT(told[i].mapping.serial == told[serial].mapping.serial);
	}
	munmap(at, 9 * PAGE);
	EXPECT(told_count == 7);
}

QUIET static void moves(void)
{
	char *at = map(NULL, 3, 0), *moved;

	told_count = 1;
	moved = mremap(at, 3 * PAGE, 300 * PAGE, MREMAP_MAYMOVE);
	expect(1, REMAPPING, moved, 300);
	EXPECT(told[1].before.address == (uintptr_t)at);
	EXPECT(told[1].before.size == 3 * PAGE);
	EXPECT(told[1].before.serial == told[1].mapping.serial);
	at = mremap(moved, 300 * PAGE, 2 * PAGE, 0);
	expect(2, REMAPPING, at, 2);
	munmap(at, 2 * PAGE);
	expect(3, UNMAPPING, at, 2);
	EXPECT(told_count == 4);
}

QUIET static void failures(void)
{
	char *at = map(NULL, 1, 0);

	told_count = 0;
	EXPECT(mmap(NULL, 0, 0, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	       MAP_FAILED);
	EXPECT(munmap(at + 1, PAGE) == -1);
	EXPECT(munmap(at, 0) == -1);
	EXPECT(mremap(at, PAGE, 1ul << 60, MREMAP_MAYMOVE) == MAP_FAILED);
	EXPECT(told_count == 0);
	munmap(at, PAGE);
	expect(0, UNMAPPING, at, 1);
}

QUIET static void breaks(void)
{
	char *end;

	told_count = 0;
	end = sbrk(0);
	EXPECT(told_count == 0);
	EXPECT(sbrk(16 * PAGE) == end);
	expect(0, BREAK, end, 16);
	EXPECT(brk(end) == 0);
	EXPECT(told_count == 2);
	EXPECT(told[1].mapping.address == (uintptr_t)end + 16 * PAGE);
}

int main(void)
{
	parts();
	moves();
	failures();
	breaks();
	return 0;
}
