#ifndef SHIM_DEBUGINFO_PROTOTYPE_H
#define SHIM_DEBUGINFO_PROTOTYPE_H

#include "inspect/prototype.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>

/* The result of @function, then its parameters: how many; 0: more than @room. */
size_t prototype_read(Dwarf_Die *function, struct prototype_value *values,
		      size_t room);

/* The function as it was written: its parameters are all there, in their order. */
Dwarf_Die prototype_written(Dwarf_Die *function);
/* The same, or the declaration in its class, which has what clang leaves out,
 * without names. */
Dwarf_Die prototype_listed(Dwarf_Die *function);
/* A parameter that the compiler added; @position counts from 1. */
bool prototype_is_hidden(Dwarf_Die *parameter, size_t position);

/* clang 14, without optimization, leaves out objects that are passed by their
 * address and not used.  The name, as the source has it, tells whether all are
 * there. */
bool prototype_may_lack(Dwarf_Die *function);
bool prototype_is_complete(const char *name,
			   const struct prototype_value *values, size_t count);

/* Whether callers may leave out what it does not use. */
uint8_t prototype_is_optional(Dwarf_Die *function);

/* How a type travels that is neither qualified nor another name for one. */
void prototype_classify(Dwarf_Die *die, struct prototype_value *value);

#endif
