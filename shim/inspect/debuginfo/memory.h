#ifndef SHIM_DEBUGINFO_MEMORY_H
#define SHIM_DEBUGINFO_MEMORY_H

#include <stdbool.h>

/* Whether an allocation has failed since memory_begin: an answer may lack what it
 * was for, and is to be asked for again. */
void memory_begin(void);
bool memory_lacked(void);

#endif
