#ifndef SHIM_DEBUGINFO_CLASSIFY_H
#define SHIM_DEBUGINFO_CLASSIFY_H

#include "inspect/prototype.h"

#include <elfutils/libdw.h>

/* Stores how a value of type @die is passed.  @die is neither a qualifier nor a
 * typedef. */
void classify_type(Dwarf_Die *die, struct prototype_value *value);

/* Stores how @die is passed: a parameter, or the result of a function. */
void classify_value(Dwarf_Die *die, struct prototype_value *value);

#endif
