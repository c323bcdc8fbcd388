/*
 * Slow hooks in signal handlers that came while a slow hook ran.  What such a hook is
 * told lies in other memory than what the interrupted one is being told, and it has a
 * stack of its own; both are kept for the next handler.
 */
#ifndef SHIM_NESTED_H
#define SHIM_NESTED_H

#include "runtime/thread.h"

enum nested {
	NESTED_CALL,	/* the hook itself made the call */
	NESTED_HANDLER,	/* a handler, which interrupted it */
	NESTED_LEFT,	/* nobody is in the hook any more */
};

/*
 * Whose call it is that comes while @self->frame is there.  For NESTED_HANDLER the
 * memory has been changed, until nested_end; @self->frame is the caller's affair.
 * NESTED_CALL also when that is not known, or handlers are in each other too deeply.
 */
enum nested nested_begin(struct thread *self);
void nested_end(struct thread *self);

/* @self goes on at @sp: hooks below it are not there any more. */
void nested_jumped(struct thread *self, uintptr_t sp);

#endif
