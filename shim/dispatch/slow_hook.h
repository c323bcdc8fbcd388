/*
 * Slow hooks, which may query arguments and results.  The data are in a frame on the
 * stack, between the program's call and the hook.  The hook's eltInfo is the frame's
 * address.
 */
#ifndef SHIM_SLOW_HOOK_H
#define SHIM_SLOW_HOOK_H

#include "arch.h"
#include "dispatch/plan.h"
#include "runtime/thread.h"

/* The struct that a shim_frame_info points to (section 3.4), in struct arch_frame. */
struct slow_hook_info {
	uint16_t size;
	uint16_t version; /* 1 */
	shim_function function;
	/* in the function; or in its caller, if the function has jumped to the hook */
	uintptr_t ip;
	uintptr_t frame; /* the program's stack pointer at the hook */
};

/* Calls @entry's slow, ELT2 or ELT1 hook. */
void slow_hook_call(struct thread *self, const struct plan_entry *entry,
		    const struct plan_call *call, uintptr_t client);

/* The slow hook that dispatch.S calls for @entry, or NULL. */
void *slow_hook_single(const struct plan_entry *entry, enum plan_event event);

#endif
