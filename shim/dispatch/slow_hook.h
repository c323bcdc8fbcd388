/*
 * Slow hooks: the frame between a call of the program and a hook that may ask
 * questions.  It is built on the stack and found by the hook's eltInfo.
 */
#ifndef SHIM_SLOW_HOOK_H
#define SHIM_SLOW_HOOK_H

#include "arch.h"
#include "dispatch/plan.h"
#include "runtime/thread.h"

/* What shim_frame_info points to (section 3.4), in struct arch_frame. */
struct slow_hook_info {
	uint16_t size;
	uint16_t version;	/* 1 */
	shim_function function;
	uintptr_t ip;		/* in the function, or in its caller when it jumped
				   to the hook */
	uintptr_t frame;	/* the program's stack pointer at the hook */
};

/* Calls @entry's slow, ELT2 or ELT1 hook. */
void slow_hook_call(struct thread *self, const struct plan_entry *entry,
		const struct plan_call *call, uintptr_t client);

/* What entry.S may call as a slow hook for @entry, or NULL. */
void *slow_hook_single(const struct plan_entry *entry, enum plan_event event);

#endif
