/*
 * Debug information that zstd has compressed, which elfutils before 0.189 cannot read.  The
 * report is built with this file, too.
 */
#ifndef SHIM_DEBUGINFO_ZSTD_H
#define SHIM_DEBUGINFO_ZSTD_H

#include <libelf.h>
#include <stdbool.h>

/* The kind of a compressed section; not in the elf.h of older libraries. */
#define COMPRESSED_WITH_ZSTD 2

/* Whether it has compressed a section of @elf, which may be NULL. */
bool zstd_is_in(Elf *elf);

#endif
