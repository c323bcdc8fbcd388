/* Opens and keeps the files with debug information. */
#ifndef SHIM_DEBUGINFO_FILE_H
#define SHIM_DEBUGINFO_FILE_H

#include "inspect/debuginfo/debuginfo.h"

#include <elfutils/libdw.h>
#include <stdbool.h>

/* The debug information of the image in the query, valid until the next call; NULL if
 * it has none.  Without one, @answer gets the reason at the first call. */
Dwarf *file_open(const struct debuginfo_question *question,
		 struct debuginfo_answer *answer);

/* Replaces @unit by its other part if its functions are in a separate file (split
 * DWARF).  False if that file is missing; @answer says so once. */
bool file_open_split(const struct debuginfo_question *question,
		     struct debuginfo_answer *answer, Dwarf_Die *unit);

/* The ELF file that is open. */
Elf *file_elf(const struct debuginfo_question *question);

/* The unwind tables, which are read from the object itself because they are never
 * stripped. */
Dwarf_CFI *file_frames(const struct debuginfo_question *question);

/* Drops the data of @image, which may be incomplete.  The next query reads it again. */
void file_forget(uint64_t image);

/* Called after reading @image crashed.  Never reads the image again, and never touches
 * its data.  0: no image; only leaves the data that was in use. */
void file_abandon(uint64_t image);

#endif
