/*
 * Call contexts: what a callback for a call may ask about it (rows M-57 to
 * M-65).
 *
 * A context is a number that is used once: it leads to the call only through the
 * guard of the callback that got it, so that nobody else's and no later use of it
 * finds anything.
 */
#ifndef SHIM_CONTEXT_H
#define SHIM_CONTEXT_H

#include "runtime/events.h"
#include "runtime/hook.h"

#include <shim/contexts.h>

/* Whether somebody has asked for contexts.  Async. */
bool context_is_enabled(void);

/* What the callback that is about to be called in @guard is given for @call;
 * NULL if it cannot ask. */
struct shim_call_context *context_begin(struct guard *guard,
					const struct plan_call *call);

#endif
