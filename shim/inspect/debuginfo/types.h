/* Prints types and template arguments as C++ writes them. */
#ifndef SHIM_DEBUGINFO_TYPES_H
#define SHIM_DEBUGINFO_TYPES_H

#include <elfutils/libdw.h>
#include <stdio.h>

/*
 * Prints the template arguments of @function, each with a NUL: first those of its
 * classes, outermost first, then its own.  @function must have code, and be in @unit.
 */
void types_print_arguments(Dwarf_Die *unit, Dwarf_Die *function, FILE *out);

#endif
