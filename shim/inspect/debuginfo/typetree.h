#ifndef SHIM_DEBUGINFO_TYPETREE_H
#define SHIM_DEBUGINFO_TYPETREE_H

#include "inspect/debuginfo/debuginfo.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>

/* An answer that is being made: struct typetree_value, one after the other. */
struct typetree_list {
	char *memory; /* malloc's; kept for the next answer */
	size_t size, room;
};

/* Adds what DW_AT_type of @die says, a parameter, a variable or a function (its
 * result), and @name, which may be NULL.  False: no memory. */
bool typetree_add(struct typetree_list *list, Dwarf_Die *die, const char *name);

/* The same of @type itself, which has no name but @type_name if it is NULL, for a
 * value that has none. */
bool typetree_add_type(struct typetree_list *list, Dwarf_Die *type,
		       const char *type_name);

#endif
