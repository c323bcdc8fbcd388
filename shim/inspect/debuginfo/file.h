/*
 * The files with debug information.
 */
#ifndef SHIM_DEBUGINFO_FILE_H
#define SHIM_DEBUGINFO_FILE_H

#include "inspect/debuginfo/debuginfo.h"

#include <elfutils/libdw.h>
#include <stdbool.h>

/* The debug information of the image in the query, valid until the next call; NULL if
 * it has none.  The first time @answer gets the reason. */
Dwarf *file_open(const struct debuginfo_question *question,
		 struct debuginfo_answer *answer);

/* Replaces @unit by its other part if its functions are in a file of their own (split
 * DWARF).  False if that file is missing; @answer gets that once. */
bool file_open_split(const struct debuginfo_question *question,
		     struct debuginfo_answer *answer, Dwarf_Die *unit);

/* The ELF file that is open. */
Elf *file_elf(const struct debuginfo_question *question);

/* The unwind tables, from the object itself: they are never stripped. */
Dwarf_CFI *file_frames(const struct debuginfo_question *question);

/* Drops what was read of @image, which may lack parts; the next query reads it
 * again. */
void file_forget(uint64_t image);

/* Reading @image crashed: it is not tried again, and its data is not touched.  0: no
 * image; only leaves the data that was in use. */
void file_abandon(uint64_t image);

#endif
