/*
 * Stored answers about code: tables that grow, and entries of code that has gone.
 */
#include "inspect/code_cache.h"

#include "os/sys.h"
#include "runtime/state.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* --- what code_cache.c needs --- */

static bool has_no_memory;
static size_t mapped; /* the last size */

int sys_map(size_t size, void **memory)
{
	if (has_no_memory)
		return -ENOMEM;
	mapped = size;
	*memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return *memory == MAP_FAILED ? -ENOMEM : 0;
}

/* --- entries --- */

struct answer {
	struct code_cache_entry entry;
	uint64_t value;
};

static struct answer make(uintptr_t address, uintptr_t function, uintptr_t site,
			  uint64_t value)
{
	return (struct answer){
		.entry = { .address = address,
			   .function = function,
			   .site = site,
			   .age = code_cache_age(),
			   .size = sizeof(struct answer) },
		.value = value,
	};
}

static const struct answer *keep(struct code_cache *table, uintptr_t address,
				 uintptr_t function, uintptr_t site,
				 uint64_t value)
{
	struct answer answer = make(address, function, site, value);

	return (const struct answer *)code_cache_keep(table, &answer.entry);
}

static const struct answer *find(const struct code_cache *table,
				 uintptr_t address, uintptr_t function,
				 uintptr_t site)
{
	return (const struct answer *)code_cache_find(table, address, function,
						      site);
}

#define MANY 5000

Test(code_cache, a_table_with_many_entries_has_all_of_them)
{
	struct code_cache table = { NULL };

	cr_expect(eq(ptr, (void *)find(&table, 1, 2, 3), NULL));
	for (uint32_t i = 0; i < MANY; i++) {
		cr_assert(keep(&table, 0x1000 + i * 16, i, i % 3, i) != NULL);
		cr_assert(eq(u32, code_cache_count(&table), i + 1));
		/* A search ends at a slot that is free, and a mask has all lower bits. */
		cr_assert(eq(u32, table.slots->mask & (table.slots->mask + 1),
			     0));
		cr_assert(lt(u32, table.slots->used, table.slots->mask));
	}
	for (uint32_t i = 0; i < MANY; i++) {
		const struct answer *found = find(&table, 0x1000 + i * 16, i,
						  i % 3);

		cr_assert(found != NULL, "%u", i);
		cr_assert(eq(u64, found->value, i));
	}
	cr_expect(
		eq(ptr, (void *)find(&table, 0x1000 + MANY * 16, 0, 0), NULL));
}

Test(code_cache, a_table_grows_when_half_of_it_is_used)
{
	struct code_cache table = { NULL };

	for (uint32_t i = 0; i < 512; i++)
		keep(&table, i * 16, 1, 0, i);
	cr_expect(eq(u32, table.slots->mask, 1023));
	keep(&table, 512 * 16, 1, 0, 0);
	cr_expect(eq(u32, table.slots->mask, 2047));
	cr_expect(eq(u32, code_cache_count(&table), 513));
}

Test(code_cache, the_key_is_address_function_and_site)
{
	struct code_cache table = { NULL };

	keep(&table, 0x1000, 0x2000, 0x3000, 7);
	cr_assert(find(&table, 0x1000, 0x2000, 0x3000) != NULL);
	cr_expect(eq(ptr, (void *)find(&table, 0x1001, 0x2000, 0x3000), NULL));
	cr_expect(eq(ptr, (void *)find(&table, 0x1000, 0x2001, 0x3000), NULL));
	cr_expect(eq(ptr, (void *)find(&table, 0x1000, 0x2000, 0), NULL));
}

Test(code_cache, an_equal_entry_is_not_stored_again)
{
	struct code_cache table = { NULL };
	const struct answer *first = keep(&table, 1, 2, 3, 4), *other;

	cr_expect(eq(ptr, (void *)keep(&table, 1, 2, 3, 4), (void *)first));
	cr_expect(eq(u32, code_cache_count(&table), 1));
	/* Every byte behind the head counts. */
	for (unsigned bit = 0; bit < 64; bit++) {
		other = keep(&table, 1, 2, 3, 4 ^ 1ull << bit);
		cr_expect(ne(ptr, (void *)other, (void *)first), "%u", bit);
		cr_expect(eq(u64, other->value, 4 ^ 1ull << bit));
		cr_expect(
			eq(ptr, (void *)find(&table, 1, 2, 3), (void *)other));
	}
	cr_expect(eq(u32, code_cache_count(&table), 1));
}

Test(code_cache, an_entry_of_another_size_is_another_entry)
{
	struct code_cache table = { NULL };
	struct answer longer[2] = { make(1, 2, 3, 4) };
	const void *first = keep(&table, 1, 2, 3, 4);

	longer[0].entry.size = sizeof(longer);
	cr_expect(ne(ptr, (void *)code_cache_keep(&table, &longer[0].entry),
		     (void *)first));
}

Test(code_cache, after_an_object_was_closed_no_entry_is_valid)
{
	struct code_cache table = { NULL };
	const struct answer *first = keep(&table, 1, 2, 3, 4);

	code_cache_closed();
	cr_expect(eq(ptr, (void *)find(&table, 1, 2, 3), NULL));
	/* The same answer makes the old entry valid. */
	cr_expect(eq(ptr, (void *)keep(&table, 1, 2, 3, 4), (void *)first));
	cr_expect(eq(ptr, (void *)find(&table, 1, 2, 3), (void *)first));
}

Test(code_cache,
     the_front_has_the_last_entry_of_a_place_until_an_object_is_closed)
{
	static const enum code_cache_front fronts[] = { KNOWN_ENTERS,
							KNOWN_LEAVES };
	struct answer one = make(0x1000, 1, 0, 0), two = make(0x1000, 2, 0, 0);

	for (size_t i = 0; i < 2; i++) {
		code_cache_put_in_front(fronts[i], &one.entry);
		cr_expect(eq(
			ptr,
			(void *)code_cache_find_in_front(fronts[i], 0x1000, 1),
			&one));
		cr_expect(eq(
			ptr,
			(void *)code_cache_find_in_front(fronts[i], 0x1000, 2),
			NULL));
		/* Each front is a table of its own. */
		cr_expect(eq(
			ptr,
			(void *)code_cache_find_in_front(fronts[!i], 0x1000, 1),
			NULL));
		code_cache_put_in_front(fronts[i], &two.entry);
		cr_expect(eq(
			ptr,
			(void *)code_cache_find_in_front(fronts[i], 0x1000, 1),
			NULL));
		cr_expect(eq(
			ptr,
			(void *)code_cache_find_in_front(fronts[i], 0x1000, 2),
			&two));
	}
	code_cache_closed();
	for (size_t i = 0; i < 2; i++) {
		cr_expect(eq(
			ptr,
			(void *)code_cache_find_in_front(fronts[i], 0x1000, 2),
			NULL));
		/* An entry of the old age does not come back. */
		code_cache_put_in_front(fronts[i], &one.entry);
		cr_expect(eq(
			ptr,
			(void *)code_cache_find_in_front(fronts[i], 0x1000, 1),
			NULL));
	}
}

/* --- memory --- */

Test(code_cache, without_memory_nothing_is_stored)
{
	struct code_cache table = { NULL };

	has_no_memory = true;
	cr_expect(eq(ptr, (void *)keep(&table, 1, 2, 3, 4), NULL));
	cr_expect(eq(ptr, (void *)find(&table, 1, 2, 3), NULL));
	has_no_memory = false;
	for (uint32_t i = 0; i < 512; i++)
		keep(&table, i * 16, 1, 0, i);
	/* The entry has memory in the block, but a larger table has none. */
	has_no_memory = true;
	cr_expect(eq(ptr, (void *)keep(&table, 512 * 16, 1, 0, 0), NULL));
	cr_expect(eq(u32, code_cache_count(&table), 512));
	cr_expect(find(&table, 511 * 16, 1, 0) != NULL);
}

Test(code_cache, pieces_of_a_block_do_not_overlap)
{
	unsigned char *pieces[200];
	size_t sizes[200];

	for (size_t i = 0; i < 200; i++) {
		sizes[i] = 1 + i * 83 % 16384;
		pieces[i] = code_cache_allocate(sizes[i]);
		cr_assert(pieces[i] != NULL);
		cr_assert(eq(u64, (uintptr_t)pieces[i] % 16, 0));
		for (size_t k = 0; k < sizes[i]; k++)
			cr_assert(zero(u8, pieces[i][k]));
		memset(pieces[i], (int)i + 1, sizes[i]);
	}
	for (size_t i = 0; i < 200; i++) {
		cr_expect(eq(u8, pieces[i][0], (uint8_t)(i + 1)), "%zu", i);
		cr_expect(eq(u8, pieces[i][sizes[i] - 1], (uint8_t)(i + 1)),
			  "%zu", i);
	}
}

Test(code_cache, a_quarter_of_a_block_is_part_of_one)
{
	mapped = 0;
	cr_assert(code_cache_allocate(16) != NULL);
	cr_expect(eq(sz, mapped, 65536));
	mapped = 0;
	cr_assert(code_cache_allocate(16385) != NULL);
	cr_expect(eq(sz, mapped, 16400));
	mapped = 0;
	for (int i = 0; i < 3; i++)
		cr_assert(code_cache_allocate(16384) != NULL);
	/* 16 bytes and three quarters; the last one fills the block. */
	cr_assert(code_cache_allocate(16368) != NULL);
	cr_expect(zero(sz, mapped));
	cr_assert(code_cache_allocate(1) != NULL);
	cr_expect(eq(sz, mapped, 65536));
}
