/*
 * What was found out about the program's code, and is kept: tables of open
 * addressing that only grow and are read without a lock, by signal handlers too.
 */
#ifndef SHIM_CODE_CACHE_H
#define SHIM_CODE_CACHE_H

#include "runtime/asm_offsets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begins every entry. */
struct code_cache_entry {
	uintptr_t address, function; /* what it is about ... */
	uintptr_t site;		     /* ... and 0: wherever that is called from */
	uint32_t age;		     /* 0: it is to be found out again */
	uint32_t size;		     /* of all of the entry, in bytes */
};

struct code_cache_slots {
	uint32_t mask, used;
	struct code_cache_entry *entries[]; /* each store publishes one */
};

struct code_cache {
	struct code_cache_slots *slots;
};

/* Entries of another age may be about code that has gone.  They stay, because
 * somebody may be reading them. */
extern uint32_t code_cache_current_age;

static inline uint32_t code_cache_age(void)
{
	return __atomic_load_n(&code_cache_current_age, __ATOMIC_ACQUIRE);
}

static inline uint32_t code_cache_start(uintptr_t address, uintptr_t site)
{
	return (uint32_t)((address ^ site << 20) * 0x61c88647u >> 24);
}

static inline bool code_cache_is(const struct code_cache_entry *entry, uintptr_t address,
			    uintptr_t function, uintptr_t site)
{
	return entry->address == address && entry->function == function &&
	       entry->site == site;
}

/* NULL: nothing is known that is still true. */
static inline const struct code_cache_entry *code_cache_find(const struct code_cache *table,
					     uintptr_t address,
					     uintptr_t function, uintptr_t site)
{
	struct code_cache_slots *in =
		__atomic_load_n(&table->slots, __ATOMIC_ACQUIRE);
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
 * Keeps a copy of @draft, whose padding is compared as well.  The same library is
 * often opened and closed many times: an entry that says the same becomes valid
 * again.  Returns the entry, or NULL without memory.  State lock held.
 */
const struct code_cache_entry *code_cache_keep(struct code_cache *table,
			       const struct code_cache_entry *draft);

/* Makes @entry, which stays, what is known.  False: no memory.  State lock held. */
bool code_cache_publish(struct code_cache *table, struct code_cache_entry *entry);

/* Some of them are wanted at each call: they have one place each, which entry.S
 * knows, too, and lose it to others. */
#define KNOWN_FRONT_SIZE (1u << (32 - LAYOUT_FRONT_SHIFT))

enum code_cache_front { KNOWN_ENTERS, KNOWN_LEAVES };

extern const struct code_cache_entry *code_cache_fronts[2][KNOWN_FRONT_SIZE]
	__attribute__((visibility("hidden")));

static inline uint32_t code_cache_front_place(uintptr_t address)
{
	return (uint32_t)address * (uint32_t)LAYOUT_FRONT_FACTOR >>
	       LAYOUT_FRONT_SHIFT;
}

/* NULL: it may be known all the same. */
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

/* Puts @entry, which is kept, there.  State lock held. */
void code_cache_put_in_front(enum code_cache_front front, const struct code_cache_entry *entry);

/* How many entries there are. */
static inline uint32_t code_cache_count(const struct code_cache *table)
{
	const struct code_cache_slots *slots =
		__atomic_load_n(&table->slots, __ATOMIC_ACQUIRE);

	return slots ? __atomic_load_n(&slots->used, __ATOMIC_RELAXED) : 0;
}

/* Memory that is never given back, or NULL.  State lock held. */
void *code_cache_allocate(size_t size);

/* The program has closed an object: its addresses may be used again. */
void code_cache_closed(void);

#endif
