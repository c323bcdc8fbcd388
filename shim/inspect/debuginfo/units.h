/*
 * Which compilation unit describes an address.
 */
#ifndef SHIM_DEBUGINFO_UNITS_H
#define SHIM_DEBUGINFO_UNITS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/* The first of the file's. */
bool units_find(Dwarf *dwarf, uint64_t address, Dwarf_Die *unit);

/* Another file is read now: what is remembered is of no use. */
void units_forget(void);

#endif
