/* Finds the DIEs in a unit that may define a class, without reading all its DIEs. */
#ifndef SHIM_DEBUGINFO_DEFINITIONS_H
#define SHIM_DEBUGINFO_DEFINITIONS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether DIEs with this tag are classes, unions or enumerations. */
bool definitions_is_class(int tag);

#define DEFINITIONS_UNKNOWN SIZE_MAX

/* Stores the offsets in @unit of all possible definitions of @name, "a::b", and returns
 * their number.  At an offset may be other bytes that only look like a DIE.
 * DEFINITIONS_UNKNOWN: the whole unit must be read, or more than @room offsets are
 * possible. */
size_t definitions_find(Dwarf_Die *unit, const char *name, size_t room,
			Dwarf_Off *offsets);
/* Drops the stored data, because another file is read from now on. */
void definitions_forget(void);

#endif
