/*
 * What filters and mappers said of each function.
 *
 * A filter or mapper has a slot.  The first event of a function asks all of
 * them, with no lock held, and publishes a record; later events find it by one
 * hash.  A record knows which answer is how old, so that changing one filter
 * does not ask the others again.
 */
#ifndef SHIM_VERDICT_H
#define SHIM_VERDICT_H

#include <shim/hooks.h>
#include <stdbool.h>

#define VERDICT_SLOTS 32

struct verdict {
	shim_function function;
	uint32_t version;		/* all answers are as new as that */
	uint32_t stubborn;		/* calls that could not be switched off */
	uint16_t asked[VERDICT_SLOTS];	/* which one's answer it is; 0: none */
	uint8_t flags[VERDICT_SLOTS];	/* enum shim_call_instrumentation_flags */
	uintptr_t client[VERDICT_SLOTS];
};

struct thread;

/* A slot for @handle's filter or mapper, or -1.  State lock held. */
int verdict_take(struct shim_handle *handle, bool is_filter);
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

#endif
