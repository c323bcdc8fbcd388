/*
 * Types without their qualifiers, and the fields of classes.
 */
#ifndef SHIM_DEBUGINFO_FIELDS_H
#define SHIM_DEBUGINFO_FIELDS_H

#include "inspect/debuginfo/attributes.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define QUALIFIERS_MAX 32 /* damaged debug information may have cycles */

/* Removes typedefs and qualifiers; false if the type is void. */
static inline bool peel(Dwarf_Die *die)
{
	for (unsigned i = 0; i < QUALIFIERS_MAX; i++) {
		switch (dwarf_tag(die)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type: break;
		default: return true;
		}
		if (!read_type(die, die))
			return false;
	}
	return false;
}

static inline bool is_class(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
	       tag == DW_TAG_union_type;
}

static inline const char *name_of(Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);

	return name ? name : "";
}

static inline bool begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The offset of a field or a base; false for a virtual base, because the object itself
 * stores that offset. */
static inline bool read_field_offset(Dwarf_Die *field, uint64_t *offset)
{
	uint64_t virtuality = 0;

	*offset = 0;
	if (dwarf_tag(field) == DW_TAG_inheritance &&
	    read_number(field, DW_AT_virtuality, &virtuality) &&
	    virtuality != 0)
		return false;
	return !dwarf_hasattr(field, DW_AT_data_member_location) ||
	       read_number(field, DW_AT_data_member_location, offset);
}

/* Whether @die is a base, or a field that the source declares and each object has. */
static inline bool is_field(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_inheritance: return true;
	case DW_TAG_member:
		return !has_flag(die, DW_AT_external) &&
		       !has_flag(die, DW_AT_declaration) &&
		       !has_flag(die, DW_AT_artificial);
	default: return false;
	}
}

#endif
