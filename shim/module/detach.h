/*
 * Profilers that are being detached (rows P-67 to P-71).
 *
 * A thread of shim waits until it can free them.  It exists only while a profiler is being
 * detached.
 */
#ifndef SHIM_DETACH_H
#define SHIM_DETACH_H

#include <stdbool.h>
#include <stdint.h>

struct module;
struct shim_profiler_handle;

/* Retires @handle; the thread frees it later.  @expected_ms: the time that this is
 * expected to take; 0: 5,000.  False if the handle is being detached already.  The
 * caller must not hold the state lock. */
bool detach_begin(struct shim_profiler_handle *handle, uint32_t expected_ms);

/* Whether a handle of @module is being detached. */
bool detach_is_pending(const struct module *module);

/* Makes the thread check again, because an unload that failed may now succeed. */
void detach_look_again(void);

#endif
