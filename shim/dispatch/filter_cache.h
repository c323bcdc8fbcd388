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

struct verdict {
	shim_function function;
	uint32_t version;		/* all answers are as new as that */
	uint32_t stubborn;		/* calls that could not be switched off */
	uint32_t asker;			/* the task that asks, or 0 */
	uint32_t life;			/* how many functions were here before */
	/* What it comes to for the only profiler there is (verdict_single). */
	uint32_t single_flags;
	uintptr_t single_client;
	uint16_t asked[VERDICT_SLOTS];	/* which one's answer it is; 0: none */
	uint8_t flags[VERDICT_SLOTS];	/* enum shim_call_instrumentation_flags */
	uintptr_t client[VERDICT_SLOTS];
};

/* Open addressing; replaced by one twice as large.  Old ones stay, for whoever
 * is reading them. */
struct verdict_map {
	size_t mask;
	size_t used;
	struct verdict *records[];
};

extern struct verdict_map *verdict_map;
extern uint32_t verdict_version;

static inline size_t verdict_hash(shim_function function)
{
	return (function >> 4) * 0x9e3779b97f4a7c15u >> 20;
}

/* The record of @function, if it is found at once and all that is known is in
 * it. */
static inline const struct verdict *verdict_look(shim_function function)
{
	const struct verdict_map *map =
		__atomic_load_n(&verdict_map, __ATOMIC_ACQUIRE);
	const struct verdict *record;

	if (!map)
		return NULL;
	record = __atomic_load_n(
		&map->records[verdict_hash(function) & map->mask],
		__ATOMIC_ACQUIRE);
	if (record && record->function == function &&
	    __atomic_load_n(&record->version, __ATOMIC_ACQUIRE) ==
		    verdict_version)
		return record;
	return NULL;
}

struct thread;

/* From now on single_flags and single_client are what these two slots (or -1)
 * say.  State lock held. */
void verdict_single(int filter, int mapper);

/* A slot for @handle's filter or mapper, or -1.  State lock held. */
int verdict_take(struct shim_profiler_handle *handle, bool is_filter);
void verdict_release(int slot);
/* What the slot's owner said before no longer counts. */
void verdict_invalidate(int slot);
void verdict_invalidate_filters(void);
/* Functions in [low, high) are gone.  State lock held. */
void verdict_forget(uintptr_t low, uintptr_t high);

/* The record of @function, however old, or NULL. */
struct verdict *verdict_find(shim_function function);

/* The record of @function, with all answers; asks whom it must.  NULL if there
 * is no memory or the calling thread is just being asked. */
const struct verdict *verdict_get(struct thread *self, shim_function function);

/* @self goes on at @sp: perhaps it has left a filter or mapper. */
void verdict_jumped(struct thread *self, uintptr_t sp);

/* Before and after a filter says something else.  State lock held. */
TOPIC(filters_change, void);

#endif
