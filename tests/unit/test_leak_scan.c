/*
 * The search for unreachable blocks.  The test has the blocks, the roots and the system;
 * the search's own memory is in the middle of the program's.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "../../shim/heap/leak_scan.c"

/* --- the program: words around the memory of the search --- */

#define ROOM   64u
#define PART   (256u << 10) /* before and behind the search's memory */
#define MEMORY (128u << 10)

static _Alignas(4096) unsigned char program[PART + MEMORY + PART];
static uintptr_t roots[4];
static struct shim_block blocks[ROOM];
static unsigned block_count, own_reads;
static size_t own_size;
static uint64_t now_ns = 1;

static void *at(size_t offset)
{
	return program + offset;
}

static void add_block(size_t offset, size_t size)
{
	blocks[block_count++] = (struct shim_block){
		.address = (uintptr_t)at(offset),
		.size = size,
	};
}

static void point(size_t from, size_t to)
{
	*(uintptr_t *)at(from) = (uintptr_t)at(to);
}

/* --- what the search needs --- */

int sys_map(size_t size, void **memory)
{
	cr_assert(le(sz, size, MEMORY));
	own_size = size;
	*memory = at(PART);
	return 0;
}

int sys_unmap(void *memory, size_t size)
{
	(void)memory, (void)size;
	return 0;
}

int sys_peek(const void *from, void *to, size_t size)
{
	uintptr_t low = (uintptr_t)from, own = (uintptr_t)at(PART);

	own_reads += low < own + own_size && own < low + size;
	now_ns++;
	if (low < 0x200000)
		return -EFAULT;
	memcpy(to, from, size);
	return 0;
}

int sys_time_ns(int clock, uint64_t *ns)
{
	(void)clock;
	*ns = now_ns;
	return 0;
}

uint64_t heap_table_room(void)
{
	return ROOM;
}

bool heap_table_next(uint64_t *position, struct shim_block *block)
{
	if (*position >= block_count)
		return false;
	*block = blocks[(*position)++];
	return true;
}

int leak_roots_find(struct leak_roots *found)
{
	*found = (struct leak_roots){ .regions = NULL };
	return 0;
}

void leak_roots_free(struct leak_roots *found)
{
	(void)found;
}

bool leak_roots_each(const struct leak_roots *found, uintptr_t sp,
		     bool (*scan)(uintptr_t low, uintptr_t high,
				  void *argument),
		     void *argument)
{
	(void)found, (void)sp;
	return scan((uintptr_t)roots, (uintptr_t)(roots + 4), argument);
}

bool leak_is_readable(const struct leak_roots *found, uintptr_t low,
		      uintptr_t high)
{
	(void)found, (void)low, (void)high;
	return false;
}

uintptr_t mappings_next(uintptr_t from, uintptr_t *low)
{
	(void)from, (void)low;
	return 0;
}

__thread struct thread *thread_current;

enum shim_result contract_refused(enum shim_result result, const char *function,
				  const void *caller)
{
	(void)function, (void)caller;
	return result;
}

bool allocations_have_all_blocks(void)
{
	return true;
}

void allocations_complete(struct shim_block *block)
{
	(void)block;
}

int events_run(const char *name, int (*call)(void *), void *argument)
{
	(void)name;
	return call(argument);
}

/* --- the tests --- */

static struct search search;

static void find(void)
{
	cr_assert(eq(int, find_leaks(&search, 1000), SHIM_OK));
	cr_expect(zero(u32, own_reads));
}

/* The program has unmapped the middle of a block, and the search has mapped its memory
 * there. */
Test(leak_scan, a_block_around_the_searchs_memory_is_scanned_on_both_sides)
{
	add_block(0, sizeof(program));
	/* The blocks that the pointers find are outside the big one. */
	for (unsigned i = 0; i < 4; i++)
		blocks[block_count++] = (struct shim_block){
			.address = 0x100000 + i * 0x100,
			.size = 0x20,
		};
	roots[0] = (uintptr_t)program;
	*(uintptr_t *)at(8) = 0x100000;
	*(uintptr_t *)at(PART - 8) = 0x100100;
	*(uintptr_t *)at(sizeof(program) - 8) = 0x100210;
	find();
	for (unsigned i = 0; i < 3; i++)
		cr_expect(eq(int, search.marks[i], SHIM_REACH_REACHED), "%u",
			  i);
	cr_expect(eq(int, search.marks[3], SHIM_REACH_LOST));
	cr_expect(eq(int, search.marks[4], SHIM_REACH_REACHED));
}

Test(leak_scan, blocks_are_reached_through_others_or_lost)
{
	for (size_t i = 6; i-- > 0;)
		add_block(i * 0x1000, 0x100);
	roots[2] = (uintptr_t)at(0);
	point(0x18, 0x10ff);   /* the last byte of the second */
	point(0x1000, 0x2100); /* behind the third */
	point(0x3000, 0x4000); /* a lost one points to a lost one */
	point(0x4008, 0x3000); /* and back */
	point(0x5000, 0x5010); /* to itself */
	find();
	cr_expect(eq(int, search.marks[0], SHIM_REACH_REACHED));
	cr_expect(eq(int, search.marks[1], SHIM_REACH_REACHED));
	cr_expect(eq(int, search.marks[2], SHIM_REACH_LOST));
	cr_expect(eq(int, search.marks[4], SHIM_REACH_FROM_LOST));
	cr_expect(eq(int, search.marks[5], SHIM_REACH_LOST));
}

Test(leak_scan, a_search_ends_at_its_limit)
{
	add_block(0, PART);
	roots[0] = (uintptr_t)program;
	cr_expect(eq(int, find_leaks(&search, 2), SHIM_E_NOT_YET_AVAILABLE));
}
