/*
 * Reads attributes of a DIE.  Some attributes are those of another DIE, to which the
 * DIE refers.
 */
#ifndef SHIM_DEBUGINFO_ATTRIBUTES_H
#define SHIM_DEBUGINFO_ATTRIBUTES_H

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Returns false and keeps *@number if the attribute is missing or is not a number. */
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

/* The type of @die, with its qualifiers; false if the type is void or not described. */
static inline bool read_type(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;

	return dwarf_formref_die(
		dwarf_attr_integrate(die, DW_AT_type, &attribute), type);
}

static inline bool has_flag(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	bool flag = false;

	return dwarf_formflag(dwarf_attr_integrate(die, name, &attribute),
			      &flag) == 0 &&
	       flag;
}

/* The first bit of a bit field of @bits bits, counted from the start of its class.
 * DWARF before version 4 counts from the upper end of an integer, which has at most
 * @storage_max bytes.  False if the integer is larger, or does not contain the
 * field. */
static inline bool read_bit_offset(Dwarf_Die *field, uint64_t bits,
				   uint64_t storage_max, uint64_t *first)
{
	uint64_t at = 0, size, from_top;

	if (read_number(field, DW_AT_data_bit_offset, first))
		return true;
	if (!read_number(field, DW_AT_byte_size, &size) || size > storage_max ||
	    !read_number(field, DW_AT_bit_offset, &from_top) ||
	    from_top + bits > size * 8)
		return false;
	read_number(field, DW_AT_data_member_location, &at);
	*first = at * 8 + size * 8 - from_top - bits;
	return true;
}

/* The compiler and its options, or NULL. */
static inline const char *read_producer(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Die unit;

	return dwarf_diecu(die, &unit, NULL, NULL) ?
		       dwarf_formstring(
			       dwarf_attr(&unit, DW_AT_producer, &attribute)) :
		       NULL;
}

static inline bool is_made_by_clang(Dwarf_Die *die)
{
	const char *producer = read_producer(die);

	return !producer || strncmp(producer, "GNU ", 4) != 0;
}

#endif
