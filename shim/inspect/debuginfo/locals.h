/*
 * Reads from DWARF the locations of a function's variables at one address in its code.
 */
#ifndef SHIM_DEBUGINFO_LOCALS_H
#define SHIM_DEBUGINFO_LOCALS_H

#include "inspect/variables.h"

#include <elfutils/libdw.h>
#include <stdbool.h>

/*
 * The parameters of @function as in the source, and the variables of its scope and of
 * the blocks that contain @place, in the order of their declarations.  Includes
 * statics, and excludes variables that the compiler added.  @place is the address of a
 * call, in the file. @frames may be NULL.  The answer is valid until the next call;
 * NULL if the function has too many variables.
 */
struct variables *locals_read(Dwarf_Die *function, uint64_t place,
			      Dwarf_CFI *frames);

#endif
