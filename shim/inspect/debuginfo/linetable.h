/*
 * The line table of a whole image, read without libdw.  libdw sorts the rows of a unit
 * by address.  After that, rows of functions that the linker has discarded look like
 * other rows.
 */
#ifndef SHIM_DEBUGINFO_LINETABLE_H
#define SHIM_DEBUGINFO_LINETABLE_H

#include "inspect/debuginfo/debuginfo.h"

debuginfo_call linetable_read;

/* Forgets the data that was read last, without touching its memory. */
void linetable_forget(void);

#endif
