/*
 * The line table of a whole image, read without libdw.  libdw sorts the rows of a unit
 * by address, after which rows of functions that the linker has discarded cannot be
 * told from others.
 */
#ifndef SHIM_DEBUGINFO_LINETABLE_H
#define SHIM_DEBUGINFO_LINETABLE_H

#include "inspect/debuginfo/debuginfo.h"

debuginfo_call linetable_read;

/* Forgets what was read last, without touching its memory. */
void linetable_forget(void);

#endif
