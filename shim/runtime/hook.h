/*
 * A hook of a profiler as it is called, one call of it, and which hook a thread is in.
 */
#ifndef SHIM_HOOK_H
#define SHIM_HOOK_H

#include "arch.h"
#include "runtime/events.h"

enum plan_kind {
	PLAN_FAST,	/* ELT3 fast */
	PLAN_FRAME,	/* ... that brought a hook for this case */
	PLAN_SLOW,	/* ELT3 slow */
	PLAN_ELT2,
	PLAN_ELT1,
	PLAN_METHOD,	/* method_* events */
};

enum plan_event {
	PLAN_ENTER,
	PLAN_LEAVE,
	PLAN_TAILCALL,
	PLAN_EXCEPTION,
	PLAN_UNWINDING,	/* a leave hook of a function that is being unwound */
};

struct plan_entry {
	enum plan_kind kind;
	bool asks;		/* fast, and its enter hook may hand over */
	bool raw;		/* its leave hook is called for PLAN_UNWINDING */
	bool tail_calls;	/* it has a hook for them; else they are leaves */
	int filter, mapper;	/* slots of verdicts, or -1 */
	struct shim_profiler_handle *handle;
	void *hooks[3];		/* enter, leave, tailcall */
};

/* One call of a hook, as far as it is known. */
struct plan_call {
	enum plan_event event;
	shim_function function;
	const void *site;
	uintptr_t frame;		/* the program's stack pointer */
	uintptr_t return_address;	/* into the program */
	struct arch_frame *registers;	/* or NULL */
	uintptr_t target;		/* of a tail call; exception */
};

/* Whether @self is in an ELT3 slow hook, which may ask questions. */
static inline bool frame_answers(const struct thread *self)
{
	const struct arch_frame *frame = self->frame;
	const struct plan_entry *entry = frame ? frame->entry : NULL;

	return entry && (entry->kind == PLAN_SLOW || entry->asks);
}

/* Whose slow, ELT2 or ELT1 hook it is in, or NULL. */
static inline struct shim_profiler_handle *frame_get_handle(const struct thread *self)
{
	return self->frame && self->frame->entry ?
		       ((const struct plan_entry *)self->frame->entry)->handle :
		       NULL;
}

#endif
