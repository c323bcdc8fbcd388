/*
 * Slow hooks in signal handlers that interrupt a slow hook.  Such a hook has its own
 * memory for values and its own stack; both are kept for the next handler.
 */
#ifndef SHIM_NESTED_H
#define SHIM_NESTED_H

#include "runtime/thread.h"

enum nested {
	NESTED_CALL,	/* the hook itself made the call */
	NESTED_HANDLER, /* a handler that interrupted the hook made it */
	NESTED_LEFT,	/* the hook has been left */
};

/*
 * Finds out what made a call while @self->frame is set.  NESTED_HANDLER: @self uses
 * other memory until nested_end; the caller sets @self->frame.  NESTED_CALL also if
 * the caller is unknown, or if handlers are nested more than HOOK_LEVELS deep.
 */
enum nested nested_begin(struct thread *self);
void nested_end(struct thread *self);

/* @self continues at @sp: hooks below were left. */
void nested_jumped(struct thread *self, uintptr_t sp);

#endif
