/*
 * A direct-mapped cache of rows in their common form.  A writer may replace an entry
 * while a thread reads it; the checksum of the entry then differs, and the reader reads
 * the tables.
 */
#include "unwind/row_cache.h"

#include <shim/banned.h>

#define CACHE_BITS 15

static struct cached_row cache[1u << CACHE_BITS];
static uint32_t epoch; /* part of the key of valid entries */

static struct cached_row *slot_of(uintptr_t address)
{
	uint64_t hash = address * 0x9e3779b97f4a7c15ull;

	return &cache[hash >> (64 - CACHE_BITS)];
}

uint64_t row_cache_key(uintptr_t address, bool is_exact)
{
	return address << 1 ^ is_exact ^
	       (uint64_t)__atomic_load_n(&epoch, __ATOMIC_ACQUIRE) << 48;
}

static uint64_t checksum_of(const struct cached_row *row)
{
	return ~(row->address ^ row->function * 5 ^ row->distances ^
		 row->cfa * 3);
}

bool row_cache_find(uint64_t key, struct cached_row *found)
{
	const struct cached_row *at = slot_of(key);

	found->address = __atomic_load_n(&at->address, __ATOMIC_RELAXED);
	found->function = __atomic_load_n(&at->function, __ATOMIC_RELAXED);
	found->distances = __atomic_load_n(&at->distances, __ATOMIC_RELAXED);
	found->cfa = __atomic_load_n(&at->cfa, __ATOMIC_RELAXED);
	found->sum = __atomic_load_n(&at->sum, __ATOMIC_RELAXED);
	return found->address == key && found->sum == checksum_of(found);
}

static void store_row(uint64_t key, uint64_t function, uint64_t distances,
		      uint64_t cfa)
{
	const struct cached_row new = { key, function, distances, cfa, 0 };
	struct cached_row *at = slot_of(key);

	__atomic_store_n(&at->address, key, __ATOMIC_RELAXED);
	__atomic_store_n(&at->function, function, __ATOMIC_RELAXED);
	__atomic_store_n(&at->distances, distances, __ATOMIC_RELAXED);
	__atomic_store_n(&at->cfa, cfa, __ATOMIC_RELAXED);
	__atomic_store_n(&at->sum, checksum_of(&new), __ATOMIC_RELAXED);
}

void row_cache_store(uint64_t key, const struct cfi_machine *machine)
{
	const struct row *row = &machine->row;
	const struct rule *ip = &row->rules[machine->fde.return_register];
	uint64_t distances = 0, cfa;

	if (ip->how == HOW_UNDEFINED) {
		store_row(key, machine->fde.start, 0, ROW_LAST);
		return;
	}
	cfa = ROW_SIMPLE | (uint64_t)row->cfa.size << 8 |
	      (uint64_t)(uint16_t)(ip->value / 8) << 16 |
	      (uint64_t)(uint32_t)row->cfa.value << 32;
	if (row->cfa.how != HOW_IS || row->cfa.size >= WALK_REGISTERS ||
	    row->cfa.value != (int32_t)row->cfa.value || ip->how != HOW_AT ||
	    ip->value % 8 || ip->value / 8 != (int16_t)(ip->value / 8))
		cfa = ROW_COMPLEX;
	for (unsigned i = 0; i < sizeof(row_registers); i++) {
		const struct rule *rule = &row->rules[row_registers[i]];
		int64_t distance = rule->value / 8;

		if (rule->how == HOW_SAME)
			distance = -512;
		else if (rule->how != HOW_AT || rule->value % 8 ||
			 distance <= -512 || distance > 511)
			cfa = ROW_COMPLEX;
		distances |= ((uint64_t)distance & DISTANCE_MASK)
			     << (DISTANCE_BITS * i);
	}
	for (unsigned i = 0; i < WALK_REGISTERS; i++)
		if (i != WALK_IP && i != WALK_SP && !(0xf048u >> i & 1) &&
		    row->rules[i].how != HOW_SAME)
			cfa = ROW_COMPLEX;
	if (machine->fde.is_signal_frame)
		cfa = ROW_COMPLEX | ROW_SIGNAL;
	store_row(key, machine->fde.start, distances, cfa);
}

void row_cache_clear(void)
{
	if ((uint16_t)__atomic_add_fetch(&epoch, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	for (unsigned i = 0; i < sizeof(cache) / sizeof(*cache); i++)
		__atomic_store_n(&cache[i].address, 0, __ATOMIC_RELAXED);
}
