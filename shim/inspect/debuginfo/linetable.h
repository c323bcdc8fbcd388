/*
 * The line table of a whole image, read by ourselves: libdw sorts the rows of a
 * unit by their addresses, after which nobody knows any more which of them belong
 * to functions that the linker has thrown away.
 */
#ifndef SHIM_DEBUGINFO_LINETABLE_H
#define SHIM_DEBUGINFO_LINETABLE_H

#include "inspect/debuginfo/debuginfo.h"

debuginfo_call linetable_read;

/* What was read last is left as it is. */
void linetable_forget(void);

#endif
