/*
 * Which units may define a class, found out without a walk through them.
 */
#ifndef SHIM_DEBUGINFO_DEFINITIONS_H
#define SHIM_DEBUGINFO_DEFINITIONS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether entries with this tag are classes, unions or enumerations. */
bool definitions_is_class(int tag);

#define DEFINITIONS_UNKNOWN SIZE_MAX

/* Where in @unit definitions of @name, "a::b", may be: how many entries, and
 * there are no others; bytes may look like one by chance.  DEFINITIONS_UNKNOWN:
 * anywhere, or in more than @room places. */
size_t definitions_find(Dwarf_Die *unit, const char *name, size_t room,
			Dwarf_Off *offsets);
/* Another file is read now: what is remembered is of no use. */
void definitions_forget(void);

#endif
