#include "blocks.h"

#include "sys.h"

#include <shim/cpu.h>

#include <shim/banned.h>

#define WAYS 8
#define TABLES 12
#define FIRST_BITS 8		/* buckets of the first table: 2^ */
#define MORE_BITS 2

#define RESERVED 1ull		/* an address that is being put in */

struct facts {
	uint64_t size : 54;
	uint64_t alignment : 6;		/* log 2, and one more; 0: none */
	uint64_t kind : 4;
	uint64_t serial;
	uint64_t note;
};

struct bucket {
	uint64_t address[WAYS];		/* 0: free */
	struct facts facts[WAYS];
};

_Static_assert(sizeof(struct bucket) == 256, "four cache lines");

static struct bucket *tables[TABLES];

/* Tables before this one are full, or were: who is looked for is probably not
 * there.  How often there was no room in it; where races lose one, no matter. */
static unsigned first;
static uint64_t refusals;

static unsigned bits_of(unsigned table)
{
	return FIRST_BITS + MORE_BITS * table;
}

static uint64_t hash(uintptr_t address)
{
	return (address >> 4) * 0x9e3779b97f4a7c15ull;
}

static struct bucket *bucket_of(struct bucket *buckets, unsigned bits,
				uint64_t hash, unsigned which)
{
	return &buckets[(which ? hash << 23 : hash) >> (64 - bits)];
}

/* Of the table that another thread may just have made as well. */
static struct bucket *make_table(unsigned table)
{
	size_t size = sizeof(struct bucket) << bits_of(table);
	struct bucket *none = NULL;
	void *memory;

	if (sys_map(size, &memory) < 0)
		return NULL;
	if (__atomic_compare_exchange_n(&tables[table], &none,
					(struct bucket *)memory, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return memory;
	sys_unmap(memory, size);
	return none;
}

static struct bucket *get_table(unsigned table)
{
	return __atomic_load_n(&tables[table], __ATOMIC_ACQUIRE);
}

static unsigned alignment_bits(uint64_t alignment)
{
	return alignment ? 64 - (unsigned)__builtin_clzll(alignment) : 0;
}

static bool reserve(uint64_t *address)
{
	uint64_t none = 0;

	if (shim_is_single_threaded())
		return shim_replace(address, NULL, (void *)RESERVED);
	return __atomic_compare_exchange_n(address, &none, RESERVED, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static bool claim(struct bucket *bucket, unsigned *way)
{
	for (unsigned i = 0; i < WAYS; i++) {
		if (__atomic_load_n(&bucket->address[i], __ATOMIC_RELAXED) != 0)
			continue;
		if (reserve(&bucket->address[i])) {
			*way = i;
			return true;
		}
	}
	return false;
}

static void fill(struct bucket *bucket, unsigned way, struct shim_block *block,
		 uint64_t note)
{
	struct facts *facts = &bucket->facts[way];

	facts->size = block->size;
	facts->alignment = alignment_bits(block->alignment);
	facts->kind = block->kind;
	facts->serial = block->serial;
	facts->note = note;
	block->note = &facts->note;
	__atomic_store_n(&bucket->address[way], block->address,
			 __ATOMIC_RELEASE);
}

static unsigned get_first(void)
{
	return __atomic_load_n(&first, __ATOMIC_RELAXED);
}

static void refuse(unsigned table)
{
	uint64_t count = __atomic_load_n(&refusals, __ATOMIC_RELAXED) + 1;

	if (table != get_first() || table + 1 == TABLES)
		return;
	if (count > 1ull << (bits_of(table) - 2)) {
		__atomic_store_n(&first, table + 1, __ATOMIC_RELAXED);
		count = 0;
	}
	__atomic_store_n(&refusals, count, __ATOMIC_RELAXED);
}

bool blocks_add(struct shim_block *block, uint64_t note)
{
	uint64_t key = hash(block->address);

	for (unsigned t = get_first(); t < TABLES; t++) {
		struct bucket *buckets = get_table(t);

		if (!buckets)
			buckets = make_table(t);
		if (!buckets)
			return false;
		for (unsigned which = 0; which < 2; which++) {
			struct bucket *bucket =
				bucket_of(buckets, bits_of(t), key, which);
			unsigned way;

			if (claim(bucket, &way)) {
				fill(bucket, way, block, note);
				return true;
			}
		}
		refuse(t);
	}
	return false;
}

static void copy(const struct bucket *bucket, unsigned way,
		 struct shim_block *block)
{
	const struct facts *facts = &bucket->facts[way];

	block->size = facts->size;
	block->alignment = facts->alignment ? 1ull << (facts->alignment - 1) :
					      0;
	block->kind = facts->kind;
	block->unused = 0;
	block->serial = facts->serial;
}

static bool take_from(struct bucket *bucket, uintptr_t address,
		      struct shim_block *block, uint64_t *note)
{
	for (unsigned i = 0; i < WAYS; i++) {
		if (__atomic_load_n(&bucket->address[i], __ATOMIC_ACQUIRE) !=
		    address)
			continue;
		block->address = address;
		copy(bucket, i, block);
		block->note = NULL;
		*note = bucket->facts[i].note;
		__atomic_store_n(&bucket->address[i], 0, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

static bool take_from_table(unsigned table, uintptr_t address,
			    struct shim_block *block, uint64_t *note)
{
	struct bucket *buckets = get_table(table);
	unsigned bits = bits_of(table);
	uint64_t key = hash(address);

	return buckets && (take_from(bucket_of(buckets, bits, key, 0), address,
				     block, note) ||
			   take_from(bucket_of(buckets, bits, key, 1), address,
				     block, note));
}

/* Of many blocks all of this is out of the caches: it comes at the same time, with
 * what the allocator is going to look at. */
static void fetch(unsigned table, uintptr_t address)
{
	struct bucket *buckets = get_table(table);
	uint64_t key = hash(address);

	__builtin_prefetch((const void *)(address - 16), 1);
	if (!buckets)
		return;
	__builtin_prefetch(bucket_of(buckets, bits_of(table), key, 0), 1);
	__builtin_prefetch(bucket_of(buckets, bits_of(table), key, 1), 1);
}

bool blocks_take(uintptr_t address, struct shim_block *block, uint64_t *note)
{
	unsigned begin = get_first();

	fetch(begin, address);
	for (unsigned t = begin; t < TABLES && get_table(t); t++)
		if (take_from_table(t, address, block, note))
			return true;
	while (begin-- > 0)
		if (take_from_table(begin, address, block, note))
			return true;
	return false;
}

/* What is there now may be another block than a moment ago. */
static bool copy_whole(struct bucket *bucket, unsigned way,
		       struct shim_block *block)
{
	uint64_t address = __atomic_load_n(&bucket->address[way],
					   __ATOMIC_ACQUIRE);

	if (address == 0 || address == RESERVED)
		return false;
	block->address = address;
	copy(bucket, way, block);
	block->note = &bucket->facts[way].note;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&bucket->address[way], __ATOMIC_RELAXED) ==
	       address;
}

bool blocks_next(uint64_t *position, struct shim_block *block)
{
	uint64_t base = 0;

	for (unsigned t = 0; t < TABLES && get_table(t); t++) {
		uint64_t room = (uint64_t)WAYS << bits_of(t);

		while (*position < base + room) {
			uint64_t at = (*position)++ - base;

			if (copy_whole(&get_table(t)[at / WAYS], at % WAYS,
				       block))
				return true;
		}
		base += room;
	}
	return false;
}
