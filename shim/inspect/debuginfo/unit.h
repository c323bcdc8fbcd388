/* Finds the scopes and functions of a compilation unit in one pass through it. */
#ifndef SHIM_DEBUGINFO_UNIT_H
#define SHIM_DEBUGINFO_UNIT_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>

/* A namespace or class, and the range of DIEs in it. */
struct unit_scope {
	Dwarf_Off start, end;
	Dwarf_Die die;
};

/* The scopes of the unit of @die, sorted by start; returns their number. */
size_t unit_scopes(Dwarf_Die *die, const struct unit_scope **scopes);

/* Whether @class is directly in the unit or in a namespace.  Then unit_namespaces
 * returns all scopes around it, sorted by start. */
bool unit_is_outermost(Dwarf_Die *class);
size_t unit_namespaces(Dwarf_Die *die, const struct unit_scope **scopes);

/* Reads @unit, as the first query about it would. */
void unit_read(Dwarf_Die *unit);

/* Finds the definition of the function in @unit that begins at @address, or that has a
 * part which begins there. */
bool unit_find_function(Dwarf_Die *unit, Dwarf_Addr address,
			Dwarf_Die *function);

/* The function that contains @address, unless it is inside another function or a
 * class. */
bool unit_find_around(Dwarf_Die *unit, Dwarf_Addr address, Dwarf_Die *function);

/* Drops the stored data, because another file is read from now on. */
void unit_forget(void);

#endif
