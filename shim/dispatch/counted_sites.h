/*
 * Call sites that count their calls.  All functions: state lock held.
 */
#ifndef SHIM_COUNTED_SITES_H
#define SHIM_COUNTED_SITES_H

#include <shim/builtin.h>
#include <shim/hooks.h>
#include <stdint.h>

/* Switches those of @count calls off that are counted, and gives them back their
 * distances.  Returns 0, or the first -errno after all. */
int counted_sites_uncount(const struct shim_hook_call *calls, uint32_t count);
void counted_sites_uncount_all(void);

#endif
