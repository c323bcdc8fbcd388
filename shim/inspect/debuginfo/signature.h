/*
 * Parameters from a function's name, and classes from where they are defined.
 */
#ifndef SHIM_DEBUGINFO_SIGNATURE_H
#define SHIM_DEBUGINFO_SIGNATURE_H

#include "inspect/debuginfo/typetree.h"
#include "inspect/prototype.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>

/* The parameters of @function, which is not a member of a class, as its name
 * has them, behind values[0]: how many and one more; 0: more than @room, or it
 * is not understood. */
size_t signature_read(Dwarf_Die *function, const char *plain,
		      struct prototype_value *values, size_t room);

/* Adds the types of the same; false: no memory. */
bool signature_add(struct typetree_list *list, Dwarf_Die *function,
		   const char *plain);

/* The definition of the class that @declared is one of, in another unit. */
bool signature_find_definition(Dwarf_Die *declared, Dwarf_Die *defined);
/* Another file is read now: what is remembered is of no use. */
void signature_forget(void);

#endif
