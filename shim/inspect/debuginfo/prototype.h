#ifndef SHIM_DEBUGINFO_PROTOTYPE_H
#define SHIM_DEBUGINFO_PROTOTYPE_H

#include "inspect/prototype.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>

/* Stores the result of @function, which begins at @address of @elf, then its parameters, and
 * returns their number; 0 if they are more than @room. */
size_t prototype_read(Dwarf_Die *function, Elf *elf, uint64_t address,
		      struct prototype_value *values, size_t room);

/* The DIE of the function as in the source, which has all parameters in order. */
Dwarf_Die prototype_written(Dwarf_Die *function);
/* Returns the same DIE; or the declaration in its class, which has the parameters that
 * clang omits, but without names. */
Dwarf_Die prototype_listed(Dwarf_Die *function);
/* Whether the compiler added the parameter; @position counts from 1. */
bool prototype_is_hidden(Dwarf_Die *parameter, size_t position);

/* Without optimization, clang 14 omits unused objects that are passed by reference. The
 * name in the source shows whether the debug information has all parameters. */
bool prototype_may_lack(Dwarf_Die *function);
bool prototype_is_complete(const char *name,
			   const struct prototype_value *values, size_t count);

/* Whether callers may omit arguments that the function does not use. */
uint8_t prototype_is_optional(Dwarf_Die *function);

#endif
