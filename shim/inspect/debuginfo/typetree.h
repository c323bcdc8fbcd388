#ifndef SHIM_DEBUGINFO_TYPETREE_H
#define SHIM_DEBUGINFO_TYPETREE_H

#include "inspect/debuginfo/debuginfo.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>

/* An answer under construction: a sequence of struct typetree_value. */
struct typetree_list {
	char *memory; /* from malloc; reused for the next answer */
	size_t size, room;
};

/* Adds the type (DW_AT_type) of @die, which is a parameter, a variable or a function
 * (its result), and @name, which may be NULL.  False without memory. */
bool typetree_add(struct typetree_list *list, Dwarf_Die *die, const char *name);

/* Adds @type itself, for a value without a name.  If @type is NULL, only the name
 * @type_name is known. */
bool typetree_add_type(struct typetree_list *list, Dwarf_Die *type,
		       const char *type_name);

#endif
