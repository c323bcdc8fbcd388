/*
 * The table of live blocks, by address.  Only the thread that owns a block changes its
 * entry.  So no lock is necessary to add and remove blocks; a free entry takes one
 * compare-and-swap.
 */
#include "heap/heap_table.h"

#include "os/assert.h"
#include "os/sys.h"

#include <shim/cpu.h>
#include <shim/record.h>

#include <shim/banned.h>

#define TABLES	   12
#define FIRST_BITS 11 /* log2 of the entries in the first table */
#define MORE_BITS  2
#define WAYS	   16 /* entries that an address may be in */

/*
 * A block, in half a cache line.  Its kind and alignment are in bits of the key that no
 * address uses.  Its clock is stored in units shorter than a tick.
 */
struct entry {
	uint64_t key;	/* 0: free */
	uint64_t facts; /* size, and above it the low bits of the clock */
	uint64_t serial;
	uint64_t note;
};

_Static_assert(sizeof(struct entry) == 32, "two to a cache line");

#define KIND_MASK      0x7ull
#define ADDRESS_MASK   0x0000fffffffffff8ull
#define ALIGNMENT_AT   48	    /* 6 bits: log2 plus 1; 0: none */
#define CLOCK_HIGH_AT  54	    /* 9 bits */
#define IS_LARGE       (1ull << 63) /* the size fills @facts; no clock */
#define SIZE_BITS      36
#define SIZE_MASK      ((1ull << SIZE_BITS) - 1)
#define CLOCK_LOW_BITS (64 - SIZE_BITS)
#define CLOCK_MASK     ((1ull << (CLOCK_LOW_BITS + 9)) - 1)

#define RESERVED 1ull /* the key of an entry that is being filled */

static struct entry *tables[TABLES];

/* The table to search first.  Earlier tables are or were full, so they probably lack
 * the address. */
static unsigned first;
/* The number of times that the first table had no room.  Races may lose some counts. */
static uint64_t refusals;

static unsigned clock_shift;

static unsigned bits_of(unsigned table)
{
	return FIRST_BITS + MORE_BITS * table;
}

/* --- tables --- */

#define HUGE_PAGE (2ul << 20)

/* Large tables get huge pages if the system has some, because accesses are random. */
static int map_table(size_t size, void **memory)
{
	char *all, *table;
	int r;

	if (size < HUGE_PAGE)
		return sys_map(size, memory);
	r = sys_map(size + HUGE_PAGE, memory);
	if (r < 0)
		return r;
	all = *memory;
	table = (char *)(((uintptr_t)all + HUGE_PAGE - 1) & -HUGE_PAGE);
	if (table != all)
		sys_unmap(all, (size_t)(table - all));
	if (table != all + HUGE_PAGE)
		sys_unmap(table + size, (size_t)(all + HUGE_PAGE - table));
	sys_prefer_huge(table, size);
	*memory = table;
	return 0;
}

/* Another thread may create the same table at the same time.  Only one of the two is
 * used. */
static struct entry *make_table(unsigned table)
{
	size_t size = sizeof(struct entry) << bits_of(table);
	struct entry *none = NULL;
	void *memory;

	if (map_table(size, &memory) < 0)
		return NULL;
	if (__atomic_compare_exchange_n(&tables[table], &none,
					(struct entry *)memory, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return memory;
	sys_unmap(memory, size);
	return none;
}

static struct entry *get_table(unsigned table)
{
	return __atomic_load_n(&tables[table], __ATOMIC_ACQUIRE);
}

/* The entries that may hold an address: this index with any change of its low 4
 * bits. */
static inline uint64_t first_way(unsigned table, uintptr_t address)
{
	return (address >> 3) * 0x9e3779b97f4a7c15ull >> (64 - bits_of(table));
}

/* --- entries --- */

static inline uint64_t key_of(const struct shim_block *block)
{
	uint64_t key = (block->address & ADDRESS_MASK) | block->kind;

	if (block->alignment)
		key |= (64 - (uint64_t)__builtin_clzll(block->alignment))
		       << ALIGNMENT_AT;
	if (__builtin_expect(block->size > SIZE_MASK, 0))
		return key | IS_LARGE;
	return key | (block->clock >> clock_shift & CLOCK_MASK) >>
			     CLOCK_LOW_BITS << CLOCK_HIGH_AT;
}

static inline uint64_t facts_of(const struct shim_block *block)
{
	if (__builtin_expect(block->size > SIZE_MASK, 0))
		return block->size;
	return block->size | block->clock >> clock_shift << SIZE_BITS;
}

static inline void read_entry(const struct entry *entry, uint64_t key,
			      struct shim_block *block)
{
	unsigned alignment = key >> ALIGNMENT_AT & 0x3f;
	uint64_t facts = entry->facts;

	block->serial = entry->serial;
	block->alignment = alignment ? 1ull << (alignment - 1) : 0;
	block->kind = key & KIND_MASK;
	if (__builtin_expect((key & IS_LARGE) != 0, 0)) {
		block->size = facts;
		block->clock = 0;
		return;
	}
	block->size = facts & SIZE_MASK;
	block->clock = (facts >> SIZE_BITS | (key >> CLOCK_HIGH_AT & 0x1ff)
						     << CLOCK_LOW_BITS)
		       << clock_shift;
}

static inline bool reserve_entry(uint64_t *key)
{
	uint64_t none = 0;

	if (__builtin_expect(shim_is_single_threaded(), 1))
		return shim_local_cas(key, NULL, (void *)RESERVED);
	return __atomic_compare_exchange_n(key, &none, RESERVED, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline struct entry *claim_entry(struct entry *table, uint64_t way)
{
	for (unsigned i = 0; i < WAYS; i++) {
		struct entry *entry = &table[way ^ i];

		if (__atomic_load_n(&entry->key, __ATOMIC_RELAXED) == 0 &&
		    reserve_entry(&entry->key))
			return entry;
	}
	return NULL;
}

static inline void fill_entry(struct entry *entry, struct shim_block *block,
			      uint64_t note)
{
	SHIM_ASSERT(entry->key == RESERVED);
	entry->facts = facts_of(block);
	entry->serial = block->serial;
	entry->note = note;
	block->note = &entry->note;
	__atomic_store_n(&entry->key, key_of(block), __ATOMIC_RELEASE);
}

/* --- adding --- */

static unsigned get_first(void)
{
	return __atomic_load_n(&first, __ATOMIC_RELAXED);
}

static void count_refusal(unsigned table)
{
	uint64_t count = __atomic_load_n(&refusals, __ATOMIC_RELAXED) + 1;

	if (table != get_first() || table + 1 == TABLES)
		return;
	if (count > 1ull << (bits_of(table) - 5)) {
		__atomic_store_n(&first, table + 1, __ATOMIC_RELAXED);
		count = 0;
	}
	__atomic_store_n(&refusals, count, __ATOMIC_RELAXED);
}

static __attribute__((cold, noinline)) struct entry *
claim_elsewhere(unsigned begin, uintptr_t address)
{
	for (unsigned t = begin; t < TABLES; t++) {
		struct entry *table = get_table(t), *entry;

		if (!table)
			table = make_table(t);
		if (!table)
			return NULL;
		entry = claim_entry(table, first_way(t, address));
		if (entry)
			return entry;
		count_refusal(t);
	}
	return NULL;
}

bool heap_table_add(struct shim_block *block, uint64_t note)
{
	unsigned t = get_first();
	struct entry *table = get_table(t), *entry = NULL;

	if (__builtin_expect((block->address & ~ADDRESS_MASK) != 0, 0))
		return false;
	if (__builtin_expect(table != NULL, 1))
		entry = claim_entry(table, first_way(t, block->address));
	if (__builtin_expect(!entry, 0))
		entry = claim_elsewhere(t, block->address);
	if (!entry)
		return false;
	fill_entry(entry, block, note);
	return true;
}

/* --- removing --- */

static inline struct entry *find_entry(struct entry *table, unsigned number,
				       uintptr_t address, uint64_t *key)
{
	uint64_t way = first_way(number, address);

	for (unsigned i = 0; i < WAYS; i++) {
		struct entry *entry = &table[way ^ i];

		*key = __atomic_load_n(&entry->key, __ATOMIC_ACQUIRE);
		if (((*key ^ address) & ADDRESS_MASK) == 0)
			return entry;
	}
	return NULL;
}

static __attribute__((cold, noinline)) struct entry *
find_elsewhere(unsigned begin, uintptr_t address, uint64_t *key)
{
	struct entry *table, *entry;

	for (unsigned t = begin + 1; t < TABLES && (table = get_table(t)); t++)
		if ((entry = find_entry(table, t, address, key)))
			return entry;
	while (begin-- > 0)
		if ((table = get_table(begin)) &&
		    (entry = find_entry(table, begin, address, key)))
			return entry;
	return NULL;
}

/* With many blocks, no cache has the entry or the allocator's header.  Prefetches both
 * at the same time. */
void heap_table_fetch(uintptr_t address)
{
	unsigned t = get_first();
	struct entry *table = get_table(t);

	__builtin_prefetch((const void *)(address - 16), 1);
	if (table)
		__builtin_prefetch(&table[first_way(t, address)], 1);
}

bool heap_table_take(uintptr_t address, struct shim_block *block,
		     uint64_t *note)
{
	unsigned t = get_first();
	struct entry *table = get_table(t), *entry = NULL;
	uint64_t key;

	if (__builtin_expect((address & ~ADDRESS_MASK) != 0, 0))
		return false;
	/* There may have been no memory for the first table. */
	if (__builtin_expect(table != NULL, 1))
		entry = find_entry(table, t, address, &key);
	if (__builtin_expect(!entry, 0))
		entry = find_elsewhere(t, address, &key);
	if (!entry)
		return false;
	block->address = address;
	read_entry(entry, key, block);
	block->note = NULL;
	*note = entry->note;
	__atomic_store_n(&entry->key, 0, __ATOMIC_RELEASE);
	return true;
}

/* --- walking --- */

/* Copies the block.  False if another thread replaced it meanwhile. */
static bool copy_whole(struct entry *entry, struct shim_block *block)
{
	uint64_t key = __atomic_load_n(&entry->key, __ATOMIC_ACQUIRE);

	if (key == 0 || key == RESERVED)
		return false;
	block->address = key & ADDRESS_MASK;
	read_entry(entry, key, block);
	block->note = &entry->note;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&entry->key, __ATOMIC_RELAXED) == key &&
	       entry->serial == block->serial;
}

bool heap_table_next(uint64_t *position, struct shim_block *block)
{
	uint64_t base = 0;

	for (unsigned t = 0; t < TABLES && get_table(t); t++) {
		uint64_t room = 1ull << bits_of(t);

		while (*position < base + room) {
			uint64_t at = (*position)++ - base;

			if (copy_whole(&get_table(t)[at], block))
				return true;
		}
		base += room;
	}
	return false;
}

/* A thread that lost its processor while it filled or freed an entry goes on in an empty
 * table: at worst, one block of another thread gets its facts, or is forgotten. */
void heap_table_forget(void)
{
	for (unsigned t = 0; t < TABLES && get_table(t); t++)
		sys_drop(get_table(t), sizeof(struct entry) << bits_of(t));
	__atomic_store_n(&refusals, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&first, 0, __ATOMIC_RELAXED);
}

uint64_t heap_table_room(void)
{
	uint64_t room = 0;

	for (unsigned t = 0; t < TABLES && get_table(t); t++)
		room += 1ull << bits_of(t);
	return room;
}

void heap_table_set_clock(uint64_t tick)
{
	clock_shift = tick < 2 ? 0 : 62 - (unsigned)__builtin_clzll(tick);
}
