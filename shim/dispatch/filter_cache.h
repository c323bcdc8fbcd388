/*
 * The answers of filters and mappers for each function.
 *
 * Each filter or mapper has a slot.  At the first event of a function, shim calls all
 * of them, without a lock, and publishes a record.  Later events find the record by one
 * hash.  A record stores the age of each answer: after a change of one filter, shim
 * does not call the others again.
 *
 * One thread calls the filters and mappers.  Other threads that need the answers wait,
 * for a second at most, because they may hold a lock that the mapper waits for.  After
 * that they make the calls, too; the answers that are published first are valid for
 * all.
 */
#ifndef SHIM_FILTER_CACHE_H
#define SHIM_FILTER_CACHE_H

#include "runtime/subscribe.h"

#include <shim/hooks.h>
#include <stdbool.h>

#define FILTER_SLOTS 32

struct filter_answer {
	shim_function function;
	uint32_t version; /* of the slots, for which all answers are complete */
	uint32_t switch_failures; /* failures to switch a call site off */
	uint32_t caller; /* the task that calls filters and mappers, or 0 */
	uint32_t reuses; /* number of earlier functions at this address */
	/* The combined answer for a single profiler (filter_cache_single). */
	uint32_t single_flags;
	uintptr_t single_client;
	uint16_t ages[FILTER_SLOTS]; /* the age of each answer; 0: none */
	uint8_t flags[FILTER_SLOTS]; /* enum shim_call_instrumentation_flags */
	uintptr_t client[FILTER_SLOTS];
};

/* A hash table with open addressing.  shim replaces a full table by one of twice the
 * size.  The old table stays mapped, because threads may be reading it. */
struct filter_cache_map {
	size_t mask;
	size_t used;
	struct filter_answer *records[];
};

extern struct filter_cache_map *filter_cache_map;
extern uint32_t filter_cache_version;

static inline size_t filter_cache_hash(shim_function function)
{
	return (function >> 4) * 0x9e3779b97f4a7c15u >> 20;
}

/* The record of @function, if the first probe finds it and its answers are complete;
 * NULL otherwise. */
static inline const struct filter_answer *
filter_cache_look(shim_function function)
{
	const struct filter_cache_map *map = __atomic_load_n(&filter_cache_map,
							     __ATOMIC_ACQUIRE);
	const struct filter_answer *record;

	if (!map)
		return NULL;
	record = __atomic_load_n(
		&map->records[filter_cache_hash(function) & map->mask],
		__ATOMIC_ACQUIRE);
	if (record && record->function == function &&
	    __atomic_load_n(&record->version, __ATOMIC_ACQUIRE) ==
		    filter_cache_version)
		return record;
	return NULL;
}

struct thread;

/* Sets the two slots (or -1) whose answers single_flags and single_client combine.
 * State lock held. */
void filter_cache_single(int filter, int mapper);

/* Claims a slot for @handle's filter or mapper; -1 if none is free.  State lock held. */
int filter_cache_claim_slot(struct shim_profiler_handle *handle,
			    bool is_filter);
void filter_cache_release_slot(int slot);
/* Makes earlier answers of the slot invalid. */
void filter_cache_invalidate(int slot);
/* Makes earlier answers of all filters invalid. */
void filter_cache_invalidate_filters(void);
/* Functions in [low, high) were unmapped.  State lock held. */
void filter_cache_forget(uintptr_t low, uintptr_t high);

/* The record of @function, also with invalid answers, or NULL. */
struct filter_answer *filter_cache_find(shim_function function);

/* The record of @function with all answers; calls filters and mappers if necessary.
 * NULL if there is no memory or the calling thread runs a filter or mapper. */
const struct filter_answer *filter_cache_get(struct thread *self,
					     shim_function function);

/* @self continues at @sp, and may have left a filter or mapper by that. */
void filter_cache_jumped(struct thread *self, uintptr_t sp);

/* Raised before and after the answers of a filter change.  State lock held. */
TOPIC(filters_change, void);

#endif
