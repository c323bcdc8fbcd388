/*
 * Types: a hook of a profiler, and a call of a hook.  Functions: which hook a thread runs.
 */
#ifndef SHIM_HOOK_H
#define SHIM_HOOK_H

#include "arch.h"
#include "runtime/events.h"

enum plan_kind {
	PLAN_FAST,  /* ELT3 fast */
	PLAN_FRAME, /* ELT3 fast, with a frame hook (shim_frame_hook) */
	PLAN_SLOW,  /* ELT3 slow */
	PLAN_ELT2,
	PLAN_ELT1,
	PLAN_METHOD, /* method_* events */
};

enum plan_event {
	PLAN_ENTER,
	PLAN_LEAVE,
	PLAN_TAILCALL,
	PLAN_EXCEPTION,
	PLAN_UNWINDING, /* a leave hook called while its function is unwound */
};

struct plan_entry {
	enum plan_kind kind;
	bool has_deferred;     /* a fast hook with a deferred hook */
	bool leaves_on_unwind; /* its leave hook also runs for PLAN_UNWINDING */
	bool tail_calls; /* it has a tailcall hook; else its leave hook runs */
	int filter, mapper; /* slots in the filter cache, or -1 */
	struct shim_profiler_handle *handle;
	void *hooks[3]; /* enter, leave, tailcall */
};

/* One call of a hook; unknown fields are 0. */
struct plan_call {
	enum plan_event event;
	shim_function function;
	const void *site;
	uintptr_t frame;	      /* the program's stack pointer */
	uintptr_t return_address;     /* into the program */
	struct arch_frame *registers; /* or NULL */
	uintptr_t target;	      /* of a tail call, or the exception */
};

/* Whether @self is in an ELT3 slow or deferred hook, which may call SYNC functions. */
static inline bool frame_answers(const struct thread *self)
{
	const struct arch_frame *frame = self->frame;
	const struct plan_entry *entry = frame ? frame->entry : NULL;

	return entry && (entry->kind == PLAN_SLOW || entry->has_deferred);
}

/* The profiler whose slow, ELT2 or ELT1 hook @self is in, or NULL. */
static inline struct shim_profiler_handle *
frame_get_handle(const struct thread *self)
{
	return self->frame && self->frame->entry ?
		       ((const struct plan_entry *)self->frame->entry)->handle :
		       NULL;
}

#endif
