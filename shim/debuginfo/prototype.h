#ifndef SHIM_DEBUGINFO_PROTOTYPE_H
#define SHIM_DEBUGINFO_PROTOTYPE_H

#include "../prototype.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>

/* The result of @function, then its parameters: how many; 0: more than @room. */
size_t prototype_read(Dwarf_Die *function, struct prototype_value *values,
		      size_t room);

/* The function as it was written: its parameters are all there, in their order. */
Dwarf_Die prototype_written(Dwarf_Die *function);
/* A parameter that the compiler added. */
bool prototype_is_hidden(Dwarf_Die *parameter);

/* clang 14 leaves out parameters of C++ that are not used.  The name, as the
 * source has it, tells whether all are there. */
bool prototype_may_lack(Dwarf_Die *function);
bool prototype_is_complete(const char *name,
			   const struct prototype_value *values, size_t count);

#endif
