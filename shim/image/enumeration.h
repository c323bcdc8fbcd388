/*
 * Snapshots of ids, in memory of shim.  Each function looks a handle up in the list of
 * existing enumerations before it uses it, so an invalid handle is an error.
 */
#ifndef SHIM_ENUMERATION_H
#define SHIM_ENUMERATION_H

#include <shim/info.h>

#define ENUMERATIONS_MAX 1024

/* Makes an empty enumeration with room for @count ids at *@ids. */
enum shim_result enumeration_make(uint32_t count, struct shim_enum **made,
				  uint64_t **ids);
/* Sets the number of ids, after the caller has stored them. */
void enumeration_fill(struct shim_enum *made, uint32_t count);

#endif
