/*
 * Two threads make the same table of heap blocks: one in the other's system call.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <sys/mman.h>

#include "heap/heap_table.c"

static size_t mapped, one_table; /* in bytes */
static void (*on_map)(void);

int sys_map(size_t size, void **memory)
{
	void (*call)(void) = on_map;

	on_map = NULL;
	if (call)
		call();
	mapped += size;
	*memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return *memory == MAP_FAILED ? -1 : 0;
}

int sys_unmap(void *memory, size_t size)
{
	mapped -= size;
	return munmap(memory, size);
}

int sys_drop(void *memory, size_t size)
{
	return madvise(memory, size, MADV_DONTNEED);
}

void sys_prefer_huge(void *memory, size_t size)
{
	(void)memory, (void)size;
}

static void add_other(void)
{
	struct shim_block block = { .address = 0x20000, .size = 2 };

	cr_assert(heap_table_add(&block, 22));
	one_table = mapped;
}

Test(heap_race, both_blocks_are_in_the_table_that_came_first)
{
	struct shim_block block = { .address = 0x10000, .size = 1 }, got;
	uint64_t note;

	on_map = add_other;
	cr_assert(heap_table_add(&block, 11));
	cr_expect(gt(sz, mapped, 0));
	cr_expect(eq(sz, mapped, one_table));
	cr_assert(heap_table_take(0x10000, &got, &note));
	cr_expect(eq(u64, got.size, 1));
	cr_expect(eq(u64, note, 11));
	cr_assert(heap_table_take(0x20000, &got, &note));
	cr_expect(eq(u64, got.size, 2));
	cr_expect(eq(u64, note, 22));
}
