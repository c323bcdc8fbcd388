/*
 * Which units may define a class, found out without a walk through them.
 */
#ifndef SHIM_DEBUGINFO_DEFINITIONS_H
#define SHIM_DEBUGINFO_DEFINITIONS_H

#include <elfutils/libdw.h>
#include <stdbool.h>

/* Whether entries with this tag are classes, unions or enumerations. */
bool definitions_is_class(int tag);

/* False: @unit has no definition of @name, "a::b".  True: it may have. */
bool definitions_may_be_in(Dwarf_Die *unit, const char *name);
/* Another file is read now: what is remembered is of no use. */
void definitions_forget(void);

#endif
