/*
 * Finds the compilation unit that describes an address.
 */
#ifndef SHIM_DEBUGINFO_UNITS_H
#define SHIM_DEBUGINFO_UNITS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/* Finds the first such unit of the file. */
bool units_find(Dwarf *dwarf, uint64_t address, Dwarf_Die *unit);

/* Drops what is stored, because another file is read from now on. */
void units_forget(void);

#endif
