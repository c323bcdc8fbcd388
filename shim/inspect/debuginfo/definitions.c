/*
 * Finds the units that may define a class.  In clang's DWARF 5, names are indices into
 * a table of the unit, so a unit has no definition of a name that its table lacks.  If
 * the unit has a definition of the name, its bytes contain the code of an abbreviation
 * for definitions, followed by the index.  Other bytes that look the same only cost
 * time. Units in other formats must be read completely.
 */
#define _GNU_SOURCE
#include "inspect/debuginfo/definitions.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdint.h>
#include <string.h>

#define NAME_MAX    512
#define STRINGS_MAX 256
#define INDICES_MAX 16
#define SHAPES_MAX  64
#define FILTER_BITS 8192
#define UNKNOWN	    SIZE_MAX

struct bytes {
	const unsigned char *start;
	size_t size;
};

/* The start of a DIE: the code of its abbreviation, other attributes, and the index of
 * its name. */
struct shape {
	unsigned char code[5];
	size_t code_size, distance, index_size;
};

/* The search for one name; a found definition may start a search for another name. */
static struct {
	Dwarf *dwarf; /* NULL: none */
	char name[NAME_MAX];
	bool is_everywhere; /* any unit may have it */
	struct bytes info, table;
	/* Offsets in .debug_str of the name, or of its last part. */
	uint32_t strings[STRINGS_MAX];
	size_t string_count;
	unsigned char filter[FILTER_BITS / 8]; /* of @strings */
} wanted;

bool definitions_is_class(int tag)
{
	return tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
	       tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type;
}

/* --- sections --- */

static struct bytes read_section(Elf_Scn *section, const GElf_Shdr *header)
{
	struct bytes none = { NULL, 0 };
	Elf_Data *data;

	if (header->sh_flags & SHF_COMPRESSED)
		return none;
	data = elf_getdata(section, NULL);
	return data && data->d_buf ?
		       (struct bytes){ data->d_buf, data->d_size } :
		       none;
}

/* Finds a section that libdw has loaded. */
static struct bytes find_section(Dwarf *dwarf, const char *wanted_name)
{
	Elf *elf = dwarf_getelf(dwarf);
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names) != 0)
		return (struct bytes){ NULL, 0 };
	while ((section = elf_nextscn(elf, section))) {
		const char *name = gelf_getshdr(section, &header) ?
					   elf_strptr(elf, names,
						      header.sh_name) :
					   NULL;

		if (name && strcmp(name, wanted_name) == 0)
			return read_section(section, &header);
	}
	return (struct bytes){ NULL, 0 };
}

static uint32_t read_word(const unsigned char *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* --- strings --- */

static void add_string(size_t offset)
{
	if (wanted.string_count == STRINGS_MAX || offset > UINT32_MAX) {
		wanted.is_everywhere = true;
		return;
	}
	wanted.strings[wanted.string_count++] = (uint32_t)offset;
	wanted.filter[offset % FILTER_BITS / 8] |=
		(unsigned char)(1 << offset % 8);
}

static bool is_wanted(uint32_t string)
{
	if (!(wanted.filter[string % FILTER_BITS / 8] & 1 << string % 8))
		return false;
	for (size_t i = 0; i < wanted.string_count; i++)
		if (wanted.strings[i] == string)
			return true;
	return false;
}

/* A DIE has a part of the name as its own: "a::b" may be b in a.  The string at @found
 * matches @end, the end of the name.  Adds each longer match that begins at a part of
 * the name. */
static void add_beginnings(const unsigned char *strings,
			   const unsigned char *found, const char *end)
{
	for (;;) {
		if (end == wanted.name ||
		    (end - wanted.name > 1 && strncmp(end - 2, "::", 2) == 0))
			add_string((size_t)(found - strings));
		if (end == wanted.name || found == strings ||
		    (char)found[-1] != end[-1])
			return;
		found--;
		end--;
	}
}

/* Finds all these strings.  Linkers may let strings share their ends. */
static void find_strings(struct bytes strings)
{
	const unsigned char *at = strings.start, *end = at + strings.size;
	const char *last = wanted.name;

	for (const char *next = last; (next = strstr(next, "::")); last = next)
		next += 2;
	if (*last == '\0')
		wanted.is_everywhere = true;
	while (!wanted.is_everywhere &&
	       (at = memmem(at, (size_t)(end - at), last, strlen(last) + 1)))
		add_beginnings(strings.start, at++, last);
}

static void begin_search(Dwarf *dwarf, const char *name)
{
	struct bytes strings = find_section(dwarf, ".debug_str");

	definitions_forget();
	strcpy(wanted.name, name);
	wanted.info = find_section(dwarf, ".debug_info");
	wanted.table = find_section(dwarf, ".debug_str_offsets");
	/* Checks that libdw reads the same bytes. */
	if (!wanted.info.start || !wanted.table.start || !strings.start ||
	    (const void *)dwarf_getstring(dwarf, 0, NULL) != strings.start)
		wanted.is_everywhere = true;
	else
		find_strings(strings);
	wanted.dwarf = dwarf;
}

void definitions_forget(void)
{
	memset(&wanted, 0, sizeof(wanted));
}

/* --- one unit --- */

/* The table of @unit without its header. */
static bool find_table(Dwarf_Die *unit, struct bytes *table)
{
	Dwarf_Attribute attribute;
	Dwarf_Word base;
	uint32_t length;

	if (!dwarf_attr(unit, DW_AT_str_offsets_base, &attribute) ||
	    dwarf_formudata(&attribute, &base) != 0 || base < 8 ||
	    base > wanted.table.size)
		return false;
	length = read_word(wanted.table.start + base - 8);
	if (length < 4 || length - 4 > wanted.table.size - base)
		return false;
	table->start = wanted.table.start + base;
	table->size = length - 4;
	return true;
}

/* Stores the indices of the name and returns their number; UNKNOWN: too many. */
static size_t find_indices(struct bytes table, uint32_t *indices)
{
	size_t count = 0;

	for (size_t i = 0; i < table.size / 4; i++) {
		if (!is_wanted(read_word(table.start + i * 4)))
			continue;
		if (count == INDICES_MAX)
			return UNKNOWN;
		indices[count++] = (uint32_t)i;
	}
	return count;
}

static size_t size_of(unsigned form)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const: return 0;
	case DW_FORM_data1:
	case DW_FORM_flag:
	case DW_FORM_ref1:
	case DW_FORM_strx1: return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2: return 2;
	case DW_FORM_strx3: return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4: return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8: return 8;
	default: return UNKNOWN;
	}
}

static bool is_index(unsigned form)
{
	return form == DW_FORM_strx1 || form == DW_FORM_strx2 ||
	       form == DW_FORM_strx3 || form == DW_FORM_strx4;
}

/* Writes the code as compilers do, in the shortest form. */
static void write_code(struct shape *shape, unsigned code)
{
	shape->code_size = 0;
	do {
		unsigned char rest = code > 0x7f ? 0x80 : 0;

		shape->code[shape->code_size++] =
			(unsigned char)((code & 0x7f) | rest);
		code >>= 7;
	} while (code);
}

enum reading { READ, NO_DEFINITION, NOT_UNDERSTOOD };

/* Reads an abbreviation of classes; skips declarations and classes without a name. */
static enum reading read_shape(Dwarf_Abbrev *abbreviation, struct shape *shape)
{
	size_t count, distance = 0;
	unsigned name, form;
	bool has_name = false, is_elsewhere = false;

	if (dwarf_getattrcnt(abbreviation, &count) != 0)
		return NOT_UNDERSTOOD;
	write_code(shape, dwarf_getabbrevcode(abbreviation));
	for (size_t i = 0; i < count; i++) {
		if (dwarf_getabbrevattr(abbreviation, i, &name, &form, NULL) !=
		    0)
			return NOT_UNDERSTOOD;
		if (name == DW_AT_declaration)
			return NO_DEFINITION;
		if (name == DW_AT_specification ||
		    name == DW_AT_abstract_origin)
			is_elsewhere = true;
		if (name == DW_AT_name && !has_name) {
			has_name = true;
			shape->distance = distance;
			shape->index_size = is_index(form) ? size_of(form) :
							     UNKNOWN;
		}
		if (distance != UNKNOWN)
			distance = size_of(form) == UNKNOWN ?
					   UNKNOWN :
					   distance + size_of(form);
	}
	if (!has_name)
		return is_elsewhere ? NOT_UNDERSTOOD : NO_DEFINITION;
	return shape->distance == UNKNOWN || shape->index_size == UNKNOWN ?
		       NOT_UNDERSTOOD :
		       READ;
}

/* Stores how definitions of classes in @unit may begin.  Returns the number of these
 * shapes; UNKNOWN if one of them is not supported. */
static size_t read_shapes(Dwarf_Die *unit, struct shape *shapes)
{
	size_t count = 0, length;
	Dwarf_Abbrev *abbreviation;

	for (Dwarf_Off at = 0;; at += length) {
		enum reading reading;

		abbreviation = dwarf_getabbrev(unit, at, &length);
		if (abbreviation == DWARF_END_ABBREV)
			return count;
		if (!abbreviation || count == SHAPES_MAX)
			return UNKNOWN;
		if (!definitions_is_class(
			    (int)dwarf_getabbrevtag(abbreviation)))
			continue;
		reading = read_shape(abbreviation, &shapes[count]);
		if (reading == NOT_UNDERSTOOD)
			return UNKNOWN;
		count += reading == READ;
	}
}

/* The bytes of the unit from its first DIE on. */
static bool find_bytes(Dwarf_Die *unit, struct bytes *bytes)
{
	Dwarf_Off start = dwarf_dieoffset(unit), end;
	Dwarf *dwarf = dwarf_cu_getdwarf(unit->cu);
	uint8_t offset_size;

	if (dwarf_next_unit(dwarf, start - dwarf_cuoffset(unit), &end, NULL,
			    NULL, NULL, NULL, &offset_size, NULL, NULL) != 0 ||
	    offset_size != 4 || end > wanted.info.size || start > end ||
	    unit->addr != (const void *)(wanted.info.start + start))
		return false;
	bytes->start = wanted.info.start + start;
	bytes->size = end - start;
	return true;
}

/* Offsets into the bytes of a unit. */
struct candidates {
	Dwarf_Off *offsets;
	size_t count, room;
};

static void add_candidate(struct candidates *candidates, ptrdiff_t offset)
{
	if (candidates->count < candidates->room)
		candidates->offsets[candidates->count] = (Dwarf_Off)offset;
	candidates->count++;
}

static bool has_shape(const unsigned char *start, const unsigned char *index,
		      const struct shape *shape)
{
	size_t before = shape->code_size + shape->distance;

	return before <= (size_t)(index - start) &&
	       memcmp(index - before, shape->code, shape->code_size) == 0;
}

/* Does the same as memmem, which is slow for so few bytes. */
static const unsigned char *find_text(const unsigned char *at,
				      const unsigned char *end,
				      const unsigned char *text, size_t size)
{
	for (; (size_t)(end - at) >= size; at++) {
		at = memchr(at, text[0], (size_t)(end - at) - size + 1);
		if (!at || memcmp(at, text, size) == 0)
			return at;
	}
	return NULL;
}

/* Finds DIEs that have @index in @size bytes. */
static void find_entries(struct bytes bytes, const struct shape *shapes,
			 size_t count, uint32_t index, size_t size,
			 struct candidates *candidates)
{
	const unsigned char *at = bytes.start, *end = at + bytes.size;
	unsigned char text[4];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (unsigned char)(index >> 8 * i);
	if (size < 4 && index >> 8 * size)
		return;
	for (; (at = find_text(at, end, text, size)); at++)
		for (size_t i = 0; i < count; i++)
			if (shapes[i].index_size == size &&
			    has_shape(bytes.start, at, &shapes[i]))
				add_candidate(candidates,
					      at - bytes.start -
						      shapes[i].distance -
						      shapes[i].code_size);
}

static bool has_index_size(const struct shape *shapes, size_t count,
			   size_t size)
{
	for (size_t i = 0; i < count; i++)
		if (shapes[i].index_size == size)
			return true;
	return false;
}

size_t definitions_find(Dwarf_Die *unit, const char *name, size_t room,
			Dwarf_Off *offsets)
{
	struct candidates candidates = { .offsets = offsets, .room = room };
	Dwarf *dwarf = dwarf_cu_getdwarf(unit->cu);
	struct shape shapes[SHAPES_MAX];
	uint32_t indices[INDICES_MAX];
	struct bytes table, bytes;
	size_t index_count, count;

	if (strlen(name) >= NAME_MAX)
		return DEFINITIONS_UNKNOWN;
	if (wanted.dwarf != dwarf || strcmp(wanted.name, name) != 0)
		begin_search(dwarf, name);
	if (wanted.is_everywhere)
		return DEFINITIONS_UNKNOWN;
	if (!find_table(unit, &table) || !find_bytes(unit, &bytes))
		return DEFINITIONS_UNKNOWN;
	index_count = find_indices(table, indices);
	/* A name without an index may be stored in a form without indices. */
	count = read_shapes(unit, shapes);
	if (index_count == UNKNOWN || count == UNKNOWN)
		return DEFINITIONS_UNKNOWN;
	for (size_t i = 0; i < index_count; i++)
		for (size_t size = 1; size <= 4; size++)
			if (has_index_size(shapes, count, size))
				find_entries(bytes, shapes, count, indices[i],
					     size, &candidates);
	if (candidates.count > room)
		return DEFINITIONS_UNKNOWN;
	for (size_t i = 0; i < candidates.count; i++)
		offsets[i] += dwarf_dieoffset(unit);
	return candidates.count;
}
