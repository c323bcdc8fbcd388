/* Lets a handler of shim go on on the stack that it has interrupted. */
#ifndef SHIM_OWN_STACK_H
#define SHIM_OWN_STACK_H

#include "runtime/thread.h"

#include <ucontext.h>

/*
 * Calls @function with copies of @context and of the @size bytes at @argument on the stack
 * that the handler with @context has interrupted, and ends the handler when that returns.
 * The caller has nothing left to do after that.  Returns, without a call, if the handler
 * runs on that stack, or the stack may be small or is not the thread's own.
 */
void own_stack_go_on(struct thread *self, const ucontext_t *context,
		     const void *argument, size_t size,
		     void (*function)(void *context, const void *argument));

#endif
