/*
 * What the variables of a function are at one place in its code, from DWARF.
 */
#ifndef SHIM_DEBUGINFO_LOCALS_H
#define SHIM_DEBUGINFO_LOCALS_H

#include "inspect/variables.h"

#include <elfutils/libdw.h>
#include <stdbool.h>

/*
 * The parameters of @function as it was written, and the variables of its scope
 * and of the blocks that @place lies in, in the order of their declaration;
 * statics too, the compiler's own not.  @place is an address in the file, that
 * of a call.  @frames may be NULL.  The answer stays until the next call; NULL:
 * there are too many.
 */
struct variables *locals_read(Dwarf_Die *function, uint64_t place,
			      Dwarf_CFI *frames);

#endif
