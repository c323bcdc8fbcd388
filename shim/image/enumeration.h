/*
 * Snapshots of ids, in memory of our own.  A handle is looked up among those
 * that exist before anything behind it is touched.
 */
#ifndef SHIM_ENUMERATION_H
#define SHIM_ENUMERATION_H

#include <shim/info.h>

#define ENUMERATIONS_MAX 1024

/* One with room for @count ids, in *@ids; it has none yet. */
enum shim_result enumeration_make(uint32_t count, struct shim_enum **made,
				  uint64_t **ids);
/* It has @count ids. */
void enumeration_fill(struct shim_enum *made, uint32_t count);

#endif
