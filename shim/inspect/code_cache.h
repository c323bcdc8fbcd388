/*
 * Stored answers about the program's code: tables with open addressing that only grow.
 * Readers take no lock, so signal handlers may read them.
 */
#ifndef SHIM_CODE_CACHE_H
#define SHIM_CODE_CACHE_H

#include "runtime/asm_offsets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The beginning of every entry. */
struct code_cache_entry {
	uintptr_t address, function; /* the key, with @site */
	uintptr_t site;		     /* the call site; 0: any */
	uint32_t age;  /* valid if it is the current age; 0: never */
	uint32_t size; /* of the whole entry, in bytes */
};

struct code_cache_slots {
	uint32_t mask, used;
	struct code_cache_entry *entries[]; /* each store publishes one */
};

struct code_cache {
	struct code_cache_slots *slots;
};

/* Entries of another age may describe code that was unloaded.  Entries are never freed,
 * because a thread may be reading them. */
extern uint32_t code_cache_current_age;

static inline uint32_t code_cache_age(void)
{
	return __atomic_load_n(&code_cache_current_age, __ATOMIC_ACQUIRE);
}

static inline uint32_t code_cache_start(uintptr_t address, uintptr_t site)
{
	return (uint32_t)((address ^ site << 20) * 0x61c88647u >> 24);
}

static inline bool code_cache_is(const struct code_cache_entry *entry,
				 uintptr_t address, uintptr_t function,
				 uintptr_t site)
{
	return entry->address == address && entry->function == function &&
	       entry->site == site;
}

/* Returns NULL if the table has no valid entry. */
static inline const struct code_cache_entry *
code_cache_find(const struct code_cache *table, uintptr_t address,
		uintptr_t function, uintptr_t site)
{
	struct code_cache_slots *in = __atomic_load_n(&table->slots,
						      __ATOMIC_ACQUIRE);
	const struct code_cache_entry *at;

	if (!in)
		return NULL;
	for (uint32_t i = code_cache_start(address, site);; i++) {
		at = __atomic_load_n(&in->entries[i & in->mask],
				     __ATOMIC_ACQUIRE);
		if (!at)
			return NULL;
		if (code_cache_is(at, address, function, site))
			break;
	}
	return __atomic_load_n(&at->age, __ATOMIC_ACQUIRE) == code_cache_age() ?
		       at :
		       NULL;
}

/*
 * Stores a copy of @draft.  If the table has an equal entry, that one becomes valid
 * again: programs often open and close the same library many times.  The comparison
 * includes the padding.  Returns the entry, or NULL without memory.  State lock held.
 */
const struct code_cache_entry *
code_cache_keep(struct code_cache *table, const struct code_cache_entry *draft);

/* Publishes @entry, whose memory must stay valid.  False without memory for the table.
 * State lock held. */
bool code_cache_publish(struct code_cache *table,
			struct code_cache_entry *entry);

/* The front tables, for entries that each call needs.  Each address has one slot, which
 * entry.S reads, too.  A later entry replaces an earlier one. */
#define KNOWN_FRONT_SIZE (1u << (32 - LAYOUT_FRONT_SHIFT))

enum code_cache_front { KNOWN_ENTERS, KNOWN_LEAVES };

extern const struct code_cache_entry *code_cache_fronts[2][KNOWN_FRONT_SIZE]
	__attribute__((visibility("hidden")));

static inline uint32_t code_cache_front_place(uintptr_t address)
{
	return (uint32_t)address * (uint32_t)LAYOUT_FRONT_FACTOR >>
	       LAYOUT_FRONT_SHIFT;
}

/* Returns NULL if the front table has no entry; the table itself may have one. */
static inline const struct code_cache_entry *
code_cache_find_in_front(enum code_cache_front front, uintptr_t address,
			 uintptr_t function)
{
	const struct code_cache_entry *at = __atomic_load_n(
		&code_cache_fronts[front][code_cache_front_place(address)],
		__ATOMIC_ACQUIRE);

	return at && at->address == address && at->function == function ? at :
									  NULL;
}

/* Puts @entry, which is never freed, into the front table.  State lock held. */
void code_cache_put_in_front(enum code_cache_front front,
			     const struct code_cache_entry *entry);

/* The number of entries. */
static inline uint32_t code_cache_count(const struct code_cache *table)
{
	const struct code_cache_slots *slots = __atomic_load_n(
		&table->slots, __ATOMIC_ACQUIRE);

	return slots ? __atomic_load_n(&slots->used, __ATOMIC_RELAXED) : 0;
}

/* Allocates memory that is never freed; NULL on failure.  State lock held. */
void *code_cache_allocate(size_t size);

/* The program has closed an object, so its addresses may be reused. */
void code_cache_closed(void);

#endif
