/*
 * Types and template arguments as C++ writes them.
 */
#ifndef SHIM_DEBUGINFO_TYPES_H
#define SHIM_DEBUGINFO_TYPES_H

#include <elfutils/libdw.h>
#include <stdio.h>

/*
 * Prints the template arguments of @function (with code, in @unit), each with a NUL:
 * first those of its classes, outermost first, then its own.
 */
void types_print_arguments(Dwarf_Die *unit, Dwarf_Die *function, FILE *out);

#endif
