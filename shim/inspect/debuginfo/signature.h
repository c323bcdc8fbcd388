/*
 * Parameters from a function's name, and classes from their definitions.
 */
#ifndef SHIM_DEBUGINFO_SIGNATURE_H
#define SHIM_DEBUGINFO_SIGNATURE_H

#include "inspect/debuginfo/typetree.h"
#include "inspect/prototype.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>

/* Stores the parameters of @function, which is not a member of a class, as its name has
 * them, from values[1] on.  Returns their number plus 1; 0 if there are more than
 * @room, or the name cannot be parsed. */
size_t signature_read(Dwarf_Die *function, const char *plain,
		      struct prototype_value *values, size_t room);

/* Adds the types of these parameters; false if there is no memory. */
bool signature_add(struct typetree_list *list, Dwarf_Die *function,
		   const char *plain);

/* Finds the definition in another unit of the class that @declared declares. */
bool signature_find_definition(Dwarf_Die *declared, Dwarf_Die *defined);
/* Drops what is stored, because another file is read from now on. */
void signature_forget(void);

#endif
