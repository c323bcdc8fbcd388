/* Reads parameters from a function's name, and finds the definitions of classes. */
#ifndef SHIM_DEBUGINFO_SIGNATURE_H
#define SHIM_DEBUGINFO_SIGNATURE_H

#include "inspect/debuginfo/typetree.h"
#include "inspect/prototype.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>

/* Stores the parameters of @function, which is not a member of a class, as its name
 * lists them, from values[1] on.  Returns their number plus 1; 0 if they are more than
 * @room, or if the name cannot be parsed. */
size_t signature_read(Dwarf_Die *function, const char *plain,
		      struct prototype_value *values, size_t room);

/* Adds the types of these parameters; false without memory. */
bool signature_add(struct typetree_list *list, Dwarf_Die *function,
		   const char *plain);

/* Finds the definition in another unit of the class that @declared declares. */
bool signature_find_definition(Dwarf_Die *declared, Dwarf_Die *defined);
/* Drops the stored data, because another file is read from now on. */
void signature_forget(void);

#endif
