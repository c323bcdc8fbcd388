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
struct known {
	uintptr_t address, function; /* what it is about ... */
	uintptr_t site;		     /* ... and 0: wherever that is called from */
	uint32_t age;		     /* 0: it is to be found out again */
	uint32_t size;		     /* of all of the entry, in bytes */
};

struct known_slots {
	uint32_t mask, used;
	struct known *entries[]; /* each store publishes one */
};

struct known_table {
	struct known_slots *slots;
};

/* Entries of another age may be about code that has gone.  They stay, because
 * somebody may be reading them. */
extern uint32_t known_current_age;

static inline uint32_t known_age(void)
{
	return __atomic_load_n(&known_current_age, __ATOMIC_ACQUIRE);
}

static inline uint32_t known_start(uintptr_t address, uintptr_t site)
{
	return (uint32_t)((address ^ site << 20) * 0x61c88647u >> 24);
}

static inline bool known_is(const struct known *entry, uintptr_t address,
			    uintptr_t function, uintptr_t site)
{
	return entry->address == address && entry->function == function &&
	       entry->site == site;
}

/* NULL: nothing is known that is still true. */
static inline const struct known *known_find(const struct known_table *table,
					     uintptr_t address,
					     uintptr_t function, uintptr_t site)
{
	struct known_slots *in =
		__atomic_load_n(&table->slots, __ATOMIC_ACQUIRE);
	const struct known *at;

	if (!in)
		return NULL;
	for (uint32_t i = known_start(address, site);; i++) {
		at = __atomic_load_n(&in->entries[i & in->mask],
				     __ATOMIC_ACQUIRE);
		if (!at)
			return NULL;
		if (known_is(at, address, function, site))
			break;
	}
	return __atomic_load_n(&at->age, __ATOMIC_ACQUIRE) == known_age() ?
		       at :
		       NULL;
}

/*
 * Keeps a copy of @draft, whose padding is compared as well.  The same library is
 * often opened and closed many times: an entry that says the same becomes valid
 * again.  Returns the entry, or NULL without memory.  State lock held.
 */
const struct known *known_keep(struct known_table *table,
			       const struct known *draft);

/* Makes @entry, which stays, what is known.  False: no memory.  State lock held. */
bool known_publish(struct known_table *table, struct known *entry);

/* Some of them are wanted at each call: they have one place each, which entry.S
 * knows, too, and lose it to others. */
#define KNOWN_FRONT_SIZE (1u << (32 - LAYOUT_FRONT_SHIFT))

enum known_front { KNOWN_ENTERS, KNOWN_LEAVES };

extern const struct known *known_fronts[2][KNOWN_FRONT_SIZE]
	__attribute__((visibility("hidden")));

static inline uint32_t known_front_place(uintptr_t address)
{
	return (uint32_t)address * (uint32_t)LAYOUT_FRONT_FACTOR >>
	       LAYOUT_FRONT_SHIFT;
}

/* NULL: it may be known all the same. */
static inline const struct known *
known_find_in_front(enum known_front front, uintptr_t address,
		    uintptr_t function)
{
	const struct known *at = __atomic_load_n(
		&known_fronts[front][known_front_place(address)],
		__ATOMIC_ACQUIRE);

	return at && at->address == address && at->function == function ? at :
									  NULL;
}

/* Puts @entry, which is kept, there.  State lock held. */
void known_put_in_front(enum known_front front, const struct known *entry);

/* How many entries there are. */
static inline uint32_t known_count(const struct known_table *table)
{
	const struct known_slots *slots =
		__atomic_load_n(&table->slots, __ATOMIC_ACQUIRE);

	return slots ? __atomic_load_n(&slots->used, __ATOMIC_RELAXED) : 0;
}

/* Memory that is never given back, or NULL.  State lock held. */
void *known_allocate(size_t size);

/* The program has closed an object: its addresses may be used again. */
void known_closed(void);

#endif
