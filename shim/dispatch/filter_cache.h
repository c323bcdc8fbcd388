/*
 * What filters and mappers said of each function.
 *
 * A filter or mapper has a slot.  The first event of a function asks all of
 * them, with no lock held, and publishes a record; later events find it by one
 * hash.  A record knows which answer is how old, so that changing one filter
 * does not ask the others again.
 *
 * One thread asks, and others that come to the function wait for it, for a second at
 * most: they may have what the mapper waits for.  Then they ask as well, and the
 * answer that is published first is everybody's.
 */
#ifndef SHIM_FILTER_CACHE_H
#define SHIM_FILTER_CACHE_H

#include "runtime/subscribe.h"

#include <shim/hooks.h>
#include <stdbool.h>

#define VERDICT_SLOTS 32

struct filter_answer {
	shim_function function;
	uint32_t version;		/* all answers are as new as that */
	uint32_t stubborn;		/* calls that could not be switched off */
	uint32_t asker;			/* the task that asks, or 0 */
	uint32_t life;			/* how many functions were here before */
	/* What it comes to for the only profiler there is (filter_cache_single). */
	uint32_t single_flags;
	uintptr_t single_client;
	uint16_t asked[VERDICT_SLOTS];	/* which one's answer it is; 0: none */
	uint8_t flags[VERDICT_SLOTS];	/* enum shim_call_instrumentation_flags */
	uintptr_t client[VERDICT_SLOTS];
};

/* Open addressing; replaced by one twice as large.  Old ones stay, for whoever
 * is reading them. */
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

/* The record of @function, if it is found at once and all that is known is in
 * it. */
static inline const struct filter_answer *filter_cache_look(shim_function function)
{
	const struct filter_cache_map *map =
		__atomic_load_n(&filter_cache_map, __ATOMIC_ACQUIRE);
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

/* From now on single_flags and single_client are what these two slots (or -1)
 * say.  State lock held. */
void filter_cache_single(int filter, int mapper);

/* A slot for @handle's filter or mapper, or -1.  State lock held. */
int filter_cache_take(struct shim_profiler_handle *handle, bool is_filter);
void filter_cache_release(int slot);
/* What the slot's owner said before no longer counts. */
void filter_cache_invalidate(int slot);
void filter_cache_invalidate_filters(void);
/* Functions in [low, high) are gone.  State lock held. */
void filter_cache_forget(uintptr_t low, uintptr_t high);

/* The record of @function, however old, or NULL. */
struct filter_answer *filter_cache_find(shim_function function);

/* The record of @function, with all answers; asks whom it must.  NULL if there
 * is no memory or the calling thread is just being asked. */
const struct filter_answer *filter_cache_get(struct thread *self, shim_function function);

/* @self goes on at @sp: perhaps it has left a filter or mapper. */
void filter_cache_jumped(struct thread *self, uintptr_t sp);

/* Before and after a filter says something else.  State lock held. */
TOPIC(filters_change, void);

#endif
