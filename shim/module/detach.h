/*
 * Profilers that are leaving (rows P-67 to P-71).
 *
 * Nobody waits for them but a thread of ours, which is there only while one
 * does.
 */
#ifndef SHIM_DETACH_H
#define SHIM_DETACH_H

#include <stdbool.h>
#include <stdint.h>

struct module;
struct shim_profiler_handle;

/* Retires @handle; the rest follows.  False if it was on its way already.
 * Never with the state lock held. */
bool detach_begin(struct shim_profiler_handle *handle, uint32_t expected_ms);

/* Whether a handle of @module is on its way. */
bool detach_is_pending(const struct module *module);

/* Something that a module waited for has happened. */
void detach_look_again(void);

#endif
