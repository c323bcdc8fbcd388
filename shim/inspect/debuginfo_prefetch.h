/*
 * Opens debug information before the first query.  Opening takes longer than any later
 * query, so the program waits at the start and in dlopen instead of in a hook.
 */
#ifndef SHIM_DEBUGINFO_PREFETCH_H
#define SHIM_DEBUGINFO_PREFETCH_H

#include <stdbool.h>

/* Prefetches from now on (shim_profiler_enable_values). */
void prefetch_enable(void);
bool prefetch_is_on(void);

/* Opens the debug information of new images with hooks.  Takes the locks of helper_ask
 * and the state lock, which the caller must not hold. */
void prefetch_new_images(void);

#endif
