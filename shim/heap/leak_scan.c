/*
 * Finds unreachable blocks: a mark phase over a sorted copy of the table of
 * blocks.  The scan is conservative: each aligned word that could be an
 * address in a block counts as a pointer to it.
 */
#include "heap/leak_roots.h"

#include "heap/allocations.h"
#include "heap/heap_table.h"
#include "heap/mappings.h"
#include "os/assert.h"
#include "os/sys.h"
#include "runtime/contract.h"

#include <errno.h>
#include <shim/cpu.h>
#include <shim/reach.h>

#include <shim/banned.h>

#define MONOTONIC 1

struct found {
	uintptr_t address;
	uint64_t size;
	uint64_t position; /* for heap_table_next */
};

/* The size of the buffer for words that other threads may unmap: the words are copied
 * before they are examined. */
#define PIECE (64u << 10)

/* A search.  Its arrays are in one mapping, @memory. */
struct search {
	struct found *blocks; /* by address */
	uint32_t *waiting;    /* reached, and not yet scanned */
	uint8_t *marks;	      /* enum shim_reach */
	uint64_t *piece;
	uint64_t count, room, waiting_count;
	uintptr_t low, high; /* the range of all blocks */
	struct leak_roots roots;
	uint64_t end_ns;
	uint64_t scanned; /* bytes scanned since the clock was read */
	uint64_t self; /* the unreachable block whose pointers are followed */
	enum shim_reach mark;
	bool is_alone, is_late;
	void *memory;
	size_t size;
};

/* --- the blocks, by address --- */

static size_t align(size_t size)
{
	return (size + 63) & ~(size_t)63;
}

/* Reserves memory for as many blocks as the table can have; unused pages take no
 * memory. */
static int reserve_arrays(struct search *search)
{
	uint64_t room = heap_table_room();
	char *at;
	int r;

	search->room = room;
	if (room > UINT32_MAX)
		return -ENOMEM;
	search->size = align(room * sizeof(struct found)) +
		       align(room * sizeof(struct found)) + align(room) + PIECE;
	r = sys_map(search->size, &search->memory);
	if (r < 0)
		return r;
	at = search->memory;
	search->blocks = (void *)at;
	at += align(room * sizeof(struct found));
	search->waiting = (void *)at;
	at += align(room * sizeof(struct found));
	search->marks = (void *)at;
	search->piece = (void *)(at + align(room));
	return 0;
}

static void collect_blocks(struct search *search)
{
	uint64_t position = 0;
	struct shim_block block;

	while (search->count < search->room &&
	       heap_table_next(&position, &block))
		search->blocks[search->count++] = (struct found){
			block.address, block.size, position - 1
		};
}

#define DIGIT_BITS 11
#define DIGITS	   4 /* of an address without its lowest 3 bits */

static bool blocks_are_sorted(const struct search *search)
{
	for (uint64_t i = 1; i < search->count; i++)
		if (search->blocks[i - 1].address > search->blocks[i].address)
			return false;
	return true;
}

/* Radix sort: four passes, each from one of the two arrays to the other. */
static void sort_blocks(struct search *search)
{
	struct found *from = search->blocks, *to = (void *)search->waiting;
	uint64_t *counts = search->piece;

	for (unsigned digit = 0; digit < DIGITS; digit++) {
		unsigned shift = 3 + digit * DIGIT_BITS;
		const uint64_t mask = (1u << DIGIT_BITS) - 1;
		uint64_t sum = 0;
		struct found *swap;

		for (unsigned i = 0; i <= mask; i++)
			counts[i] = 0;
		for (uint64_t i = 0; i < search->count; i++)
			counts[from[i].address >> shift & mask]++;
		for (unsigned i = 0; i <= mask; i++) {
			uint64_t here = counts[i];

			counts[i] = sum;
			sum += here;
		}
		for (uint64_t i = 0; i < search->count; i++)
			to[counts[from[i].address >> shift & mask]++] = from[i];
		swap = from;
		from = to;
		to = swap;
	}
	/* look_up() searches blocks by address. */
	SHIM_ASSERT(blocks_are_sorted(search));
	if (search->count) {
		const struct found *last = &search->blocks[search->count - 1];

		search->low = search->blocks[0].address;
		search->high = last->address + last->size + 1;
	}
}

/* --- following pointers --- */

static bool is_late(struct search *search, uint64_t size)
{
	uint64_t now_ns;

	search->scanned += size;
	if (search->scanned >= PIECE) {
		search->scanned = 0;
		if (sys_time_ns(MONOTONIC, &now_ns) == 0 &&
		    now_ns >= search->end_ns)
			search->is_late = true;
	}
	return search->is_late;
}

static void mark_block(struct search *search, uintptr_t word)
{
	uint64_t low = 0, high = search->count;
	const struct found *block;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (search->blocks[middle].address <= word)
			low = middle + 1;
		else
			high = middle;
	}
	if (low-- == 0)
		return;
	block = &search->blocks[low];
	if (word - block->address >= block->size && word != block->address)
		return;
	if (search->mark == SHIM_REACH_FROM_LOST && low == search->self)
		return;
	if (search->marks[low] != SHIM_REACH_LOST)
		return;
	search->marks[low] = (uint8_t)search->mark;
	search->waiting[search->waiting_count++] = (uint32_t)low;
}

static void mark_words(struct search *search, const uintptr_t *words,
		       size_t count)
{
	uintptr_t low = search->low, size = search->high - low;

	for (size_t i = 0; i < count; i++) {
		uintptr_t word = ((const volatile uintptr_t *)words)[i];

		if (__builtin_expect(word - low < size, 0))
			mark_block(search, word);
	}
}

static bool mark_range(struct search *search, uintptr_t low, size_t size)
{
	const uintptr_t *words = (const uintptr_t *)low;

	if (!search->is_alone ||
	    !leak_is_readable(&search->roots, low, low + size)) {
		if (sys_peek(words, search->piece, size) < 0)
			return false;
		words = search->piece;
	}
	mark_words(search, words, size / 8);
	return true;
}

/* Skips pages that cannot be read.  Also skips the memory of this search, which may lie
 * where the program has unmapped a part of a block. */
static bool scan_root(uintptr_t low, uintptr_t high, void *argument)
{
	struct search *search = argument;
	uintptr_t scratch = (uintptr_t)search->memory;
	size_t size, most = PIECE;

	low = (low + 7) & ~(uintptr_t)7;
	high &= ~(uintptr_t)7;
	while (low < high) {
		size = most - low % most;
		if (size > high - low)
			size = high - low;
		if (low - scratch < search->size) {
			low = scratch + search->size;
			continue;
		}
		if (scratch - low < size)
			size = scratch - low;
		if (is_late(search, size + 64))
			return false;
		if (mark_range(search, low, size) || most == 4096)
			low += size;
		else
			most = 4096;
	}
	return true;
}

static bool follow_pointers(struct search *search)
{
	while (search->waiting_count > 0) {
		const struct found *block =
			&search->blocks
				 [search->waiting[--search->waiting_count]];

		if (!scan_root(block->address, block->address + block->size,
			       search))
			return false;
	}
	return true;
}

/* Follows the pointers of each unreachable block that no earlier block points to. */
static bool follow_lost(struct search *search)
{
	search->mark = SHIM_REACH_FROM_LOST;
	for (uint64_t i = 0; i < search->count; i++) {
		if (search->marks[i] != SHIM_REACH_LOST)
			continue;
		search->self = i;
		search->waiting[search->waiting_count++] = (uint32_t)i;
		if (!follow_pointers(search))
			return false;
	}
	return true;
}

/* Whether a block begins in [low, high). */
static bool has_blocks(const struct search *search, uintptr_t low,
		       uintptr_t high)
{
	uint64_t begin = 0, end = search->count;

	while (begin < end) {
		uint64_t middle = begin + (end - begin) / 2;

		if (search->blocks[middle].address < low)
			begin = middle + 1;
		else
			end = middle;
	}
	return begin < search->count && search->blocks[begin].address < high;
}

/* Scans mappings of the program, except those in which an allocator has its blocks. */
static bool scan_mappings(struct search *search)
{
	uintptr_t low = 0, high = 0;

	while ((high = mappings_next(high, &low)) != 0)
		if (!has_blocks(search, low, high) &&
		    !scan_root(low, high, search))
			return false;
	return true;
}

/* --- the search --- */

/* Keeps addresses of blocks in the frames of find_leaks() and report_blocks().  These
 * frames are below the caller's frame, where the scanned part of the stack begins, in
 * this search and the next. */
#define OUT_OF_LINE __attribute__((noinline))

struct report {
	const struct search *search;
	shim_reach_callback callback;
	void *client_data;
};

static int report_blocks(void *argument)
{
	const struct report *report = argument;
	const struct search *search = report->search;

	for (uint64_t i = 0; i < search->count; i++) {
		const struct found *found = &search->blocks[i];
		uint64_t position = found->position;
		struct shim_block block;

		if (!heap_table_next(&position, &block) ||
		    block.address != found->address ||
		    position != found->position + 1)
			continue;
		allocations_complete(&block);
		if (report->callback(&block, (enum shim_reach)search->marks[i],
				     report->client_data) != SHIM_OK)
			return SHIM_S_FALSE;
	}
	return SHIM_OK;
}

OUT_OF_LINE static enum shim_result find_leaks(struct search *search,
					       uint64_t limit_ns)
{
	uint64_t now_ns;
	int r;

	if (sys_time_ns(MONOTONIC, &now_ns) < 0)
		return SHIM_E_FAIL;
	search->end_ns = now_ns + limit_ns < now_ns ? UINT64_MAX :
						      now_ns + limit_ns;
	r = reserve_arrays(search);
	if (r < 0)
		return SHIM_E_OUTOFMEMORY;
	r = leak_roots_find(&search->roots);
	if (r < 0)
		return r == -ENOMEM ? SHIM_E_OUTOFMEMORY : SHIM_E_FAIL;
	search->is_alone = search->roots.is_alone;
	collect_blocks(search);
	sort_blocks(search);
	search->mark = SHIM_REACH_REACHED;
	if (leak_roots_each(&search->roots,
			    (uintptr_t)__builtin_frame_address(0), scan_root,
			    search) &&
	    scan_mappings(search) && follow_pointers(search) &&
	    follow_lost(search))
		return SHIM_OK;
	return SHIM_E_NOT_YET_AVAILABLE;
}

enum shim_result shim_heap_find_leaks(shim_reach_callback callback,
				      void *client_data, uint64_t limit_ns)
{
	static bool busy;
	static struct search search;
	struct report report = { &search, callback, client_data };
	enum shim_result result;

	ENTRY_ASYNC();
	if (!callback)
		return SHIM_E_INVALIDARG;
	if (!allocations_have_all_blocks())
		return SHIM_E_INCONSISTENT_WITH_FLAGS;
	if (__atomic_exchange_n(&busy, true, __ATOMIC_ACQUIRE))
		return SHIM_E_FAIL;
	search = (struct search){ .count = 0 };
	/* Saves registers of the callers, which may hold pointers, in this frame. */
	__builtin_unwind_init();
	result = find_leaks(&search, limit_ns);
	if (result == SHIM_OK)
		result = (enum shim_result)events_run("of shim_heap_find_leaks",
						      report_blocks, &report);
	if (search.roots.regions)
		leak_roots_free(&search.roots);
	if (search.memory)
		sys_unmap(search.memory, search.size);
	__atomic_store_n(&busy, false, __ATOMIC_RELEASE);
	return result;
}
