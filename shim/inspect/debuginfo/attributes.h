/*
 * Reads attributes of a DIE, or of the DIE that it refers to for them.
 */
#ifndef SHIM_DEBUGINFO_ATTRIBUTES_H
#define SHIM_DEBUGINFO_ATTRIBUTES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/* False, without a change of *@number, if there is none or it is no number. */
static inline bool read_number(Dwarf_Die *die, unsigned name, uint64_t *number)
{
	Dwarf_Attribute attribute;
	Dwarf_Word word;

	if (dwarf_formudata(dwarf_attr_integrate(die, name, &attribute),
			    &word) != 0)
		return false;
	*number = word;
	return true;
}

static inline bool has_flag(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	bool flag = false;

	return dwarf_formflag(dwarf_attr_integrate(die, name, &attribute),
			      &flag) == 0 &&
	       flag;
}

#endif
