/*
 * What was found out about the program's code, and is kept: tables of open
 * addressing that only grow and are read without a lock, by signal handlers too.
 */
#ifndef SHIM_KNOWN_H
#define SHIM_KNOWN_H

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

/* Its place, or where it would be. */
static inline struct known **known_place(struct known_slots *in,
					 uintptr_t address, uintptr_t function,
					 uintptr_t site)
{
	for (uint32_t i = (uint32_t)(((address ^ site << 20) *
				      0x9e3779b97f4a7c15ull) >>
				     40);;
	     i++) {
		struct known **place = &in->entries[i & in->mask];
		const struct known *at =
			__atomic_load_n(place, __ATOMIC_ACQUIRE);

		if (!at || (at->address == address &&
			    at->function == function && at->site == site))
			return place;
	}
}

/* NULL: nothing is known that is still true. */
static inline const struct known *known_find(const struct known_table *table,
					     uintptr_t address,
					     uintptr_t function, uintptr_t site)
{
	struct known_slots *in =
		__atomic_load_n(&table->slots, __ATOMIC_ACQUIRE);
	const struct known *entry;

	if (!in)
		return NULL;
	entry = __atomic_load_n(known_place(in, address, function, site),
				__ATOMIC_ACQUIRE);
	return entry && __atomic_load_n(&entry->age, __ATOMIC_ACQUIRE) ==
				known_age() ?
		       entry :
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
