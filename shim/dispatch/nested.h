/*
 * Slow hooks in signal handlers that interrupt a slow hook.  Such a hook has its own
 * memory for values and its own stack.  shim keeps both for the next handler.
 */
#ifndef SHIM_NESTED_H
#define SHIM_NESTED_H

#include "runtime/thread.h"

enum nested {
	NESTED_CALL,	/* the hook itself has made the call */
	NESTED_HANDLER, /* a handler that has interrupted the hook made it */
	NESTED_LEFT,	/* the hook has ended without a return */
};

/*
 * Finds the cause of a call of a hook while @self->frame is set.  After NESTED_HANDLER,
 * @self uses other memory until nested_end, and the caller sets @self->frame.  The
 * result is also NESTED_CALL if the caller is unknown, or if handlers are nested more
 * than HOOK_LEVELS deep.
 */
enum nested nested_begin(struct thread *self);
void nested_end(struct thread *self);

/* @self continues at @sp, so hooks with frames below @sp have ended. */
void nested_jumped(struct thread *self, uintptr_t sp);

#endif
