/*
 * Finds the compilation unit that describes an address.
 */
#ifndef SHIM_DEBUGINFO_UNITS_H
#define SHIM_DEBUGINFO_UNITS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/* Finds the first unit of the file that describes @address. */
bool units_find(Dwarf *dwarf, uint64_t address, Dwarf_Die *unit);

/* Drops the stored data, because another file is read from now on. */
void units_forget(void);

#endif
