/*
 * Reads the headers of line tables: the names of the files.  Each name is stored once
 * and absolute, so that the same file has the same number in all units.
 */
#define _GNU_SOURCE
#include "inspect/debuginfo/line_header.h"

#include <dwarf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* --- names of files, each stored once --- */

static struct line_list names;	     /* of char */
static struct line_list name_places; /* of uint32_t: the start of each name */
static uint32_t *name_slots;	     /* number + 1 */
static size_t name_slots_mask;

static uint64_t hash_name(const char *text)
{
	uint64_t hash = 14695981039346656037ull;

	while (*text)
		hash = (hash ^ (unsigned char)*text++) * 1099511628211ull;
	return hash ^ hash >> 29;
}

static const char *name_at(uint32_t number)
{
	return (const char *)names.items +
	       ((const uint32_t *)name_places.items)[number];
}

static bool make_slots(void)
{
	size_t size = name_slots ? (name_slots_mask + 1) * 2 : 256;
	uint32_t *larger = calloc(size, sizeof(*larger));

	if (!larger)
		return false;
	for (uint32_t i = 0; i < name_places.count; i++) {
		uint64_t slot = hash_name(name_at(i));

		while (larger[slot & (size - 1)])
			slot++;
		larger[slot & (size - 1)] = i + 1;
	}
	free(name_slots);
	name_slots = larger;
	name_slots_mask = size - 1;
	return true;
}

/* Removes "." and ".." from an absolute name, so that each file has one name. */
static void remove_dots(char *path)
{
	char *to = path, *at = path;

	while (*at) {
		size_t length;

		while (*at == '/')
			at++;
		length = strcspn(at, "/");
		if (length == 2 && at[0] == '.' && at[1] == '.') {
			while (to > path && *--to != '/')
				;
		} else if (length > 0 && !(length == 1 && at[0] == '.')) {
			*to++ = '/';
			memmove(to, at, length);
			to += length;
		}
		at += length;
	}
	*to = '\0';
}

/* The number of a name; UINT32_MAX without memory. */
static uint32_t add_name(const char *name)
{
	uint64_t slot = hash_name(name);
	size_t size = strlen(name) + 1;
	uint32_t *place;
	char *copy;

	if (name_places.count * 2 >= name_slots_mask && !make_slots())
		return UINT32_MAX;
	for (; name_slots[slot & name_slots_mask]; slot++) {
		uint32_t number = name_slots[slot & name_slots_mask] - 1;

		if (strcmp(name_at(number), name) == 0)
			return number;
	}
	place = line_add_items(&name_places, sizeof(*place), 1);
	if (!place)
		return UINT32_MAX;
	*place = (uint32_t)names.count;
	copy = line_add_items(&names, 1, size);
	if (!copy) {
		name_places.count--;
		return UINT32_MAX;
	}
	memcpy(copy, name, size);
	name_slots[slot & name_slots_mask] = (uint32_t)name_places.count;
	return (uint32_t)name_places.count - 1;
}

/* --- units --- */

/* The directories in which units of .debug_info were compiled, by their line tables. */
struct compiled {
	uint64_t table;
	const char *directory;
};

static struct line_list compiled; /* of struct compiled */

static int by_table(const void *a, const void *b)
{
	const struct compiled *x = a, *y = b;

	return (x->table > y->table) - (x->table < y->table);
}

bool line_read_directories(Dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;
	uint8_t type;

	compiled.count = 0;
	while (dwarf_get_units(dwarf, cu, &cu, NULL, &type, &unit, NULL) == 0) {
		Dwarf_Attribute attribute;
		struct compiled *item;
		Dwarf_Word table;
		const char *directory;

		if (dwarf_formudata(
			    dwarf_attr(&unit, DW_AT_stmt_list, &attribute),
			    &table) != 0)
			continue;
		directory = dwarf_formstring(
			dwarf_attr(&unit, DW_AT_comp_dir, &attribute));
		item = line_add_items(&compiled, sizeof(*item), 1);
		if (!item)
			return false;
		*item = (struct compiled){ table, directory };
	}
	if (compiled.count > 0)
		qsort(compiled.items, compiled.count, sizeof(struct compiled),
		      by_table);
	return true;
}

static const char *find_directory(uint64_t table)
{
	struct compiled wanted = { .table = table };
	const struct compiled *found = compiled.count == 0 ?
					       NULL :
					       bsearch(&wanted, compiled.items,
						       compiled.count,
						       sizeof(wanted),
						       by_table);

	return found && found->directory ? found->directory : "";
}

struct entry {
	const char *name;
	uint64_t directory;
	uint32_t number; /* of the name; UINT32_MAX: not used yet */
};

static struct line_list directories; /* of const char * */
static struct line_list entries;     /* of struct entry */

static bool add_directory(const char *name)
{
	const char **item = line_add_items(&directories, sizeof(*item), 1);

	if (item)
		*item = name;
	return item != NULL;
}

static bool add_entry(const char *name, uint64_t directory)
{
	struct entry *item = line_add_items(&entries, sizeof(*item), 1);

	if (item)
		*item = (struct entry){ name, directory, UINT32_MAX };
	return item != NULL;
}

static void read_old_names(struct line_unit *unit, struct line_bytes *in)
{
	const char *name;

	/* Before DWARF 5, the numbers of files begin at 1, and directory 0 is the
	 * unit's. */
	add_directory(find_directory(unit->offset));
	add_entry("?", 0);
	while (*(name = line_read_string(in)) && add_directory(name))
		;
	while (*(name = line_read_string(in))) {
		uint64_t directory = line_read_unsigned(in);

		line_read_unsigned(in);
		line_read_unsigned(in);
		if (!add_entry(name, directory))
			break;
	}
}

static const char *read_text(struct line_unit *unit, struct line_bytes *in,
			     uint64_t form)
{
	switch (form) {
	case DW_FORM_string: return line_read_string(in);
	case DW_FORM_line_strp:
		return line_string_at(&unit->line_strings,
				      line_read_fixed(in, unit->offset_size));
	case DW_FORM_strp:
		return line_string_at(&unit->strings,
				      line_read_fixed(in, unit->offset_size));
	}
	return NULL;
}

static uint64_t read_number(struct line_unit *unit, struct line_bytes *in,
			    uint64_t form)
{
	switch (form) {
	case DW_FORM_udata: return line_read_unsigned(in);
	case DW_FORM_data1: return line_read_fixed(in, 1);
	case DW_FORM_data2: return line_read_fixed(in, 2);
	case DW_FORM_data4: return line_read_fixed(in, 4);
	case DW_FORM_data8: return line_read_fixed(in, 8);
	case DW_FORM_data16: line_skip(in, 16); return 0;
	case DW_FORM_block: line_skip(in, line_read_unsigned(in)); return 0;
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup: return line_read_fixed(in, unit->offset_size);
	}
	in->is_bad = true;
	return 0;
}

#define FORMATS_MAX 16

static void read_new_list(struct line_unit *unit, struct line_bytes *in,
			  bool are_directories)
{
	uint64_t kinds[FORMATS_MAX], forms[FORMATS_MAX], count;
	unsigned formats = (unsigned)line_read_fixed(in, 1);

	if (formats > FORMATS_MAX) {
		in->is_bad = true;
		return;
	}
	for (unsigned i = 0; i < formats; i++) {
		kinds[i] = line_read_unsigned(in);
		forms[i] = line_read_unsigned(in);
	}
	count = line_read_unsigned(in);
	for (uint64_t n = 0; n < count && formats > 0 && !in->is_bad; n++) {
		const char *name = "?";
		uint64_t directory = 0;

		for (unsigned i = 0; i < formats; i++) {
			const char *text = read_text(unit, in, forms[i]);
			uint64_t number = text ? 0 :
						 read_number(unit, in,
							     forms[i]);

			if (kinds[i] == DW_LNCT_path && text)
				name = text;
			else if (kinds[i] == DW_LNCT_directory_index)
				directory = number;
		}
		if (!(are_directories ? add_directory(name) :
					add_entry(name, directory)))
			return;
	}
}

bool line_read_header(struct line_unit *unit, struct line_bytes *in)
{
	uint64_t header_size;
	struct line_bytes names_in;

	unit->version = (unsigned)line_read_fixed(in, 2);
	if (unit->version < 2 || unit->version > 5)
		return false;
	if (unit->version >= 5 &&
	    (line_read_fixed(in, 1) != 8 || line_read_fixed(in, 1) != 0))
		return false;
	header_size = line_read_fixed(in, unit->offset_size);
	if (header_size > (uint64_t)(in->end - in->at))
		return false;
	unit->program = in->at + header_size;
	unit->minimum_length = (unsigned)line_read_fixed(in, 1);
	if (unit->version >= 4)
		line_read_fixed(in, 1);
	unit->is_statement = line_read_fixed(in, 1) != 0;
	unit->line_base = (signed char)line_read_fixed(in, 1);
	unit->line_range = (unsigned)line_read_fixed(in, 1);
	unit->opcode_base = (unsigned)line_read_fixed(in, 1);
	if (unit->line_range == 0 || unit->opcode_base == 0)
		return false;
	for (unsigned i = 1; i < unit->opcode_base; i++)
		unit->lengths[i] = (unsigned char)line_read_fixed(in, 1);
	if (in->is_bad || unit->program < in->at)
		return false;
	names_in = *in;
	names_in.end = unit->program;
	directories.count = entries.count = 0;
	if (unit->version >= 5) {
		read_new_list(unit, &names_in, true);
		read_new_list(unit, &names_in, false);
	} else {
		read_old_names(unit, &names_in);
	}
	return !names_in.is_bad;
}

/* --- names of files, absolute --- */

static const char *directory_at(uint64_t number)
{
	return number < directories.count ?
		       ((const char **)directories.items)[number] :
		       "";
}

static uint32_t make_name(const struct entry *entry)
{
	const char *directory = directory_at(entry->directory);
	const char *base = directory_at(0);
	char path[PATH_MAX * 2];
	size_t length = 0;
	const char *parts[3] = { base, directory, entry->name };

	if (entry->name[0] == '/')
		parts[0] = parts[1] = "";
	else if (directory[0] == '/' || entry->directory == 0)
		parts[0] = "";
	for (int i = 0; i < 3; i++) {
		size_t size = strlen(parts[i]);

		if (size == 0)
			continue;
		if (length + size + 2 > sizeof(path))
			return UINT32_MAX;
		path[length++] = '/';
		memcpy(path + length, parts[i], size);
		length += size;
	}
	path[length] = '\0';
	remove_dots(path);
	return add_name(path);
}

uint32_t line_file_number(uint64_t number)
{
	struct entry *entry = (struct entry *)entries.items + number;

	if (number >= entries.count)
		return UINT32_MAX;
	if (entry->number == UINT32_MAX)
		entry->number = make_name(entry);
	return entry->number;
}

/* --- the memory --- */

void line_names(struct debuginfo_lines *lines)
{
	lines->files = names.items;
	lines->files_size = (uint32_t)names.count;
	lines->file_count = (uint32_t)name_places.count;
}

void line_names_empty(void)
{
	names.count = name_places.count = 0;
	if (name_slots)
		memset(name_slots, 0,
		       (name_slots_mask + 1) * sizeof(*name_slots));
}

void line_header_forget(void)
{
	struct line_list *lists[] = { &names, &name_places, &compiled,
				      &directories, &entries };

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		*lists[i] = (struct line_list){ NULL, 0, 0 };
	name_slots = NULL;
	name_slots_mask = 0;
}

void line_header_free(void)
{
	struct line_list *lists[] = { &compiled, &directories, &entries };

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		free(lists[i]->items);
		*lists[i] = (struct line_list){ NULL, 0, 0 };
	}
}
