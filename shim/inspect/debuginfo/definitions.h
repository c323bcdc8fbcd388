/*
 * Finds the places in a unit that may define a class, without reading all its DIEs.
 */
#ifndef SHIM_DEBUGINFO_DEFINITIONS_H
#define SHIM_DEBUGINFO_DEFINITIONS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether DIEs with this tag are classes, unions or enumerations. */
bool definitions_is_class(int tag);

#define DEFINITIONS_UNKNOWN SIZE_MAX

/* Finds all places in @unit that may be definitions of @name, "a::b", and returns their
 * number; bytes may look like a DIE by chance.  DEFINITIONS_UNKNOWN: definitions may be
 * anywhere, or in more than @room places. */
size_t definitions_find(Dwarf_Die *unit, const char *name, size_t room,
			Dwarf_Off *offsets);
/* Drops what is stored, because another file is read from now on. */
void definitions_forget(void);

#endif
