/*
 * Call contexts, through which a callback queries its call (rows M-57 to M-65).
 *
 * A context is a number that is used once.  It leads to the call only through the guard
 * of the callback that received it.  So a use in another callback, or later, leads to
 * no call.
 */
#ifndef SHIM_CONTEXT_H
#define SHIM_CONTEXT_H

#include "runtime/events.h"
#include "runtime/hook.h"

#include <shim/contexts.h>

/* Whether a profiler has enabled contexts.  Async. */
bool context_is_enabled(void);

/* Returns the context of @call for the callback that is about to run in @guard; NULL if
 * that callback cannot query. */
struct shim_call_context *context_begin(struct guard *guard,
					const struct plan_call *call);

#endif
