/*
 * The table of heap blocks: every entry that was added can be found and
 * removed.
 */
#include "heap/heap_table.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

static struct shim_block make(uintptr_t address, uint64_t size)
{
	return (struct shim_block){ .address = address,
				    .size = size,
				    .serial = address * 3 };
}

Test(blocks, all_that_is_known_of_one_comes_back)
{
	static const uint64_t sizes[] = {
		0, 1, (1ull << 36) - 1, 1ull << 36, 1ull << 62, UINT64_MAX
	};
	struct shim_block got, block;
	uint64_t note;

	heap_table_set_clock(1000);
	for (unsigned i = 0; i < 6; i++) {
		block = make(0x7ffffffffff8 - i * 8, sizes[i]);
		block.alignment = i ? 1ull << (i * 10) : 0;
		block.kind = SHIM_ALLOCATION_ALIGNED;
		block.clock = 0x123456789ab;
		cr_assert(heap_table_add(&block, 77 + i));
		cr_assert(eq(u64, *block.note, 77 + i));
	}
	for (unsigned i = 0; i < 6; i++) {
		cr_assert(heap_table_take(0x7ffffffffff8 - i * 8, &got, &note));
		cr_assert(eq(u64, got.address, 0x7ffffffffff8 - i * 8));
		cr_assert(eq(u64, got.size, sizes[i]));
		cr_assert(eq(u64, got.serial, got.address * 3));
		cr_assert(eq(u64, got.alignment, i ? 1ull << (i * 10) : 0));
		cr_assert(eq(u32, got.kind, SHIM_ALLOCATION_ALIGNED));
		cr_assert(eq(u64, note, 77 + i));
		if (sizes[i] < 1ull << 36)
			cr_assert(le(u64, 0x123456789ab - got.clock, 499));
		else
			cr_assert(eq(u64, got.clock, 0));
		cr_assert(not(heap_table_take(got.address, &got, &note)));
	}
}

/* Addresses inside a block are not found. */
Test(blocks, what_is_no_blocks_address_is_not_found)
{
	struct shim_block block = make(0x10000, 8), got;
	uint64_t note;

	cr_assert(heap_table_add(&block, 1));
	for (unsigned i = 1; i < 64; i++)
		cr_assert(not(heap_table_take(0x10000 + i, &got, &note)));
	block.address = 0x20001;
	cr_assert(not(heap_table_add(&block, 1)));
	cr_assert(heap_table_take(0x10000, &got, &note));
}

#define ROOM 40000u

/* Uses several tables; blocks are added and removed in random order. */
Test(blocks, many_come_and_go, .timeout = 60)
{
	static uint64_t size_of[ROOM];
	struct shim_block got;
	uint64_t note, position = 0, live = 0, found = 0;
	unsigned random = 1;

	for (unsigned i = 0; i < 40 * ROOM; i++) {
		unsigned at;

		random = random * 1103515245u + 12345u;
		at = (random >> 8) % ROOM;
		if (size_of[at]) {
			cr_assert(heap_table_take((at + 1) * 16, &got, &note));
			cr_assert(eq(u64, got.size, size_of[at]));
			size_of[at] = 0;
			live--;
		} else {
			struct shim_block block = make((at + 1) * 16, i + 1);

			cr_assert(heap_table_add(&block, i));
			size_of[at] = i + 1;
			live++;
		}
	}
	while (heap_table_next(&position, &got)) {
		cr_assert(eq(u64, got.size, size_of[got.address / 16 - 1]));
		found++;
	}
	cr_assert(eq(u64, found, live));
}

/* At each attach. */
Test(blocks, forgotten_ones_leave_the_room_to_others)
{
	uint64_t room = 0, note, position = 0;
	struct shim_block got;

	for (unsigned cycle = 0; cycle < 40; cycle++) {
		for (unsigned i = 1; i <= 1000; i++) {
			struct shim_block block = make(i * 16, cycle);

			cr_assert(heap_table_add(&block, cycle));
		}
		cr_assert(cycle == 0 || heap_table_room() == room);
		room = heap_table_room();
		cr_assert(heap_table_take(16, &got, &note));
		cr_assert(eq(u64, got.size, cycle));
		heap_table_forget();
		cr_assert(not(heap_table_take(32, &got, &note)));
	}
	cr_assert(not(heap_table_next(&position, &got)));
}

/* Of all tables, also the larger ones. */
Test(blocks, all_are_forgotten_however_many_there_are)
{
	struct shim_block got;
	uint64_t note, position = 0, room = 0;

	for (unsigned i = 1; i <= ROOM; i++) {
		struct shim_block block = make(i * 16, i);

		cr_assert(heap_table_add(&block, i));
		if (i == 1)
			room = heap_table_room();
	}
	/* There was one table at first. */
	cr_assert(gt(u64, heap_table_room(), room));
	cr_assert(ge(u64, heap_table_room(), ROOM));
	heap_table_forget();
	cr_assert(not(heap_table_next(&position, &got)));
	for (unsigned i = 1; i <= ROOM; i++)
		cr_assert(not(heap_table_take(i * 16, &got, &note)));
}
