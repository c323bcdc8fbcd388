/*
 * The files debug information is read from.
 */
#ifndef SHIM_DEBUGINFO_FILE_H
#define SHIM_DEBUGINFO_FILE_H

#include "inspect/debuginfo/debuginfo.h"

#include <elfutils/libdw.h>
#include <stdbool.h>

/* The debug information of the image that is asked about, which stays until the
 * next call; NULL: it has none.  The first time @answer is told why. */
Dwarf *file_open(const struct debuginfo_question *question,
		 struct debuginfo_answer *answer);

/* The unit's other part, if its functions are in a file of their own; false if
 * that is missing, of which @answer is told once. */
bool file_open_split(const struct debuginfo_question *question,
		     struct debuginfo_answer *answer, Dwarf_Die *unit);

/* The file that is open. */
Elf *file_elf(const struct debuginfo_question *question);

/* How its frames are unwound: that is in the object itself, whatever was
 * stripped off. */
Dwarf_CFI *file_frames(const struct debuginfo_question *question);

/* What was read of @image may lack parts: it is read again when it is asked for. */
void file_forget(uint64_t image);

/* Reading @image has failed badly: it is not tried again, and what was read
 * stays as it is.  0: nothing but that. */
void file_abandon(uint64_t image);

#endif
