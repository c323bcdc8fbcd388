#ifndef SHIM_DEBUGINFO_MEMORY_H
#define SHIM_DEBUGINFO_MEMORY_H

#include <stdbool.h>

/* Whether an allocation has failed since memory_begin.  Then the answer may be
 * incomplete, and the caller must query again. */
void memory_begin(void);
bool memory_lacked(void);

#endif
