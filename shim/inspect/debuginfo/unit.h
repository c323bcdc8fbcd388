/*
 * What is where in a compilation unit, found in one walk through it.
 */
#ifndef SHIM_DEBUGINFO_UNIT_H
#define SHIM_DEBUGINFO_UNIT_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>

/* A namespace or class, and which of the unit's entries are in it. */
struct unit_scope {
	Dwarf_Off start, end;
	Dwarf_Die die;
};

/* The scopes of the unit that @die is in, by their start; how many. */
size_t unit_scopes(Dwarf_Die *die, const struct unit_scope **scopes);

/* Whether @class is in the unit itself, or in a namespace; then all scopes
 * around it are among those that unit_namespaces gives, by their start. */
bool unit_is_outermost(Dwarf_Die *class);
size_t unit_namespaces(Dwarf_Die *die, const struct unit_scope **scopes);

/* Walks through @unit, as the first question about it would. */
void unit_read(Dwarf_Die *unit);

/* The definition of the function that begins at @address in @unit, or one of
 * whose parts does. */
bool unit_find_function(Dwarf_Die *unit, Dwarf_Addr address,
			Dwarf_Die *function);

/* The one that @address lies in, if it is not in another's or in a class. */
bool unit_find_around(Dwarf_Die *unit, Dwarf_Addr address, Dwarf_Die *function);

/* Another file is read now: what is remembered is of no use. */
void unit_forget(void);

#endif
