/*
 * Call contexts: a callback for a call queries the call through one (rows M-57 to
 * M-65).
 *
 * A context is a number that is used once.  It leads to the call only through the guard
 * of the callback that got it.  So a use in another callback or later finds nothing.
 */
#ifndef SHIM_CONTEXT_H
#define SHIM_CONTEXT_H

#include "runtime/events.h"
#include "runtime/hook.h"

#include <shim/contexts.h>

/* Whether a profiler has enabled contexts.  Async. */
bool context_is_enabled(void);

/* Returns the context of @call for the callback that is about to run in @guard; NULL if
 * it cannot query. */
struct shim_call_context *context_begin(struct guard *guard,
					const struct plan_call *call);

#endif
