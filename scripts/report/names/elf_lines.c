/*
 * Finds source locations of functions with libdw.  Compilation units are found
 * by a table of their ranges, built once (clang omits .debug_aranges).  The
 * functions of a unit are listed at its first use.  A function that is not
 * listed gets the row of the line table at its entry.
 */
#include <dwarf.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/names.h"
#include "names/elf_dies.h"
#include "names/elf_lines.h"

/* Limit for nested namespaces and classes; deeper ones are not searched. */
#define DEPTH_MAX 16
/* Limit for one object: a hostile file must not take minutes. */
#define STEPS_MAX 20000000

struct range {
	uint64_t begin, end;
	uint32_t unit;
};

struct declaration {
	uint64_t address;
	Dwarf_Off die;
};

struct unit {
	Dwarf_Die die;
	bool listed;
	struct declaration *declarations; /* by address */
	uint32_t count, room;
};

struct lines {
	Dwarf *dwarf;
	Dwarf_Addr bias;
	struct range *ranges; /* by begin */
	uint32_t range_count, range_room;
	struct unit *units;
	uint32_t unit_count, unit_room;
	uint64_t steps; /* that remain */
};

static int compare_ranges(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static int compare_declarations(const void *left, const void *right)
{
	const struct declaration *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

static void add_ranges(struct lines *lines, Dwarf_Die *die, uint32_t unit)
{
	Dwarf_Addr base, begin, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &begin, &end)) > 0 &&
	       lines->steps > 0) {
		lines->steps--;
		/* Code that the linker dropped stays in the tables with address
		 * 0. */
		if (begin == 0 || begin >= end)
			continue;
		GROW(lines->ranges, lines->range_count, lines->range_room);
		lines->ranges[lines->range_count++] = (struct range){ begin,
								      end,
								      unit };
	}
}

struct lines *lines_open(Dwarf *dwarf, Dwarf_Addr bias)
{
	struct lines *lines = allocate(1, sizeof(*lines));
	Dwarf_Off at = 0, next;
	size_t header;
	Dwarf_Die die;

	lines->dwarf = dwarf;
	lines->bias = bias;
	lines->steps = STEPS_MAX;
	if (!dwarf)
		return lines;
	while (dwarf_nextcu(dwarf, at, &next, &header, NULL, NULL, NULL) == 0 &&
	       lines->steps > 0) {
		lines->steps--;
		if (dwarf_offdie(dwarf, at + header, &die)) {
			GROW(lines->units, lines->unit_count, lines->unit_room);
			lines->units[lines->unit_count] = (struct unit){
				.die = die
			};
			add_ranges(lines, &die, lines->unit_count++);
		}
		at = next;
	}
	if (lines->range_count)
		qsort(lines->ranges, lines->range_count, sizeof(*lines->ranges),
		      compare_ranges);
	return lines;
}

static struct unit *find_unit(const struct lines *lines, uint64_t address)
{
	uint32_t low = 0, high = lines->range_count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (lines->ranges[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || address >= lines->ranges[low - 1].end)
		return NULL;
	return &lines->units[lines->ranges[low - 1].unit];
}

static void add_declaration(struct unit *unit, Dwarf_Die *die)
{
	Dwarf_Addr address, base, end;

	/* A function in a hot and a cold part has ranges; the hot part is
	 * first. */
	if (dwarf_lowpc(die, &address) != 0 &&
	    dwarf_ranges(die, 0, &base, &address, &end) <= 0)
		return;
	GROW(unit->declarations, unit->count, unit->room);
	unit->declarations[unit->count++] = (struct declaration){
		address, dwarf_dieoffset(die)
	};
}

static bool visit_declaration(Dwarf_Die *die, void *unit)
{
	if (dwarf_tag(die) == DW_TAG_subprogram)
		add_declaration(unit, die);
	return die_is_scope(die);
}

static void list_declarations(struct lines *lines, struct unit *unit)
{
	unit->listed = true;
	dies_walk(&unit->die, DEPTH_MAX, &lines->steps, visit_declaration,
		  unit);
	if (unit->count)
		qsort(unit->declarations, unit->count,
		      sizeof(*unit->declarations), compare_declarations);
}

/* In DWARF 5, file 0 is the unit's own file; clang uses it, but elfutils before
 * 0.189 takes it for "no file". */
static const char *find_decl_file(Dwarf_Die *unit, Dwarf_Die *die)
{
	const char *file = dwarf_decl_file(die);
	Dwarf_Half version = 0;
	Dwarf_Files *files;
	size_t count;

	if (file ||
	    dwarf_cu_info(unit->cu, &version, NULL, NULL, NULL, NULL, NULL,
			  NULL) != 0 ||
	    version < 5 || dwarf_getsrcfiles(unit, &files, &count) != 0 ||
	    count == 0)
		return file;
	return dwarf_filesrc(files, 0, NULL, NULL);
}

const char *lines_path(Dwarf_Die *unit, const char *file)
{
	static struct names paths;
	Dwarf_Attribute attribute;
	const char *directory = NULL;
	char path[PATH_MAX];
	uint32_t number;

	if (!file || file[0] == '/')
		return file;
	if (dwarf_attr(unit, DW_AT_comp_dir, &attribute))
		directory = dwarf_formstring(&attribute);
	if (!directory || directory[0] != '/')
		return file;
	if (snprintf(path, sizeof(path), "%s/%s", directory, file) >=
	    (int)sizeof(path))
		return file;
	number = names_find(&paths, path);
	if (number == NONE)
		number = names_add(&paths, keep_text(path, SIZE_MAX));
	return paths.text[number];
}

bool lines_declared(Dwarf_Die *unit, Dwarf_Die *die, const char **file,
		    int *line)
{
	*file = lines_path(unit, find_decl_file(unit, die));
	return *file && dwarf_decl_line(die, line) == 0;
}

static bool find_declaration(struct lines *lines, struct unit *unit,
			     uint64_t address, const char **file, int *line)
{
	const struct declaration key = { .address = address }, *found = NULL;
	Dwarf_Die die;

	if (unit->count)
		found = bsearch(&key, unit->declarations, unit->count,
				sizeof(key), compare_declarations);
	if (!found || !dwarf_offdie(lines->dwarf, found->die, &die))
		return false;
	return lines_declared(&unit->die, &die, file, line);
}

static bool find_row(const struct unit *unit, uint64_t address,
		     const char **file, int *line)
{
	Dwarf_Die die = unit->die;
	Dwarf_Line *row = dwarf_getsrc_die(&die, address);

	if (!row)
		return false;
	*file = lines_path(&die, dwarf_linesrc(row, NULL, NULL));
	return *file && dwarf_lineno(row, line) == 0;
}

bool lines_row(const struct lines *lines, uint64_t address, const char **file,
	       int *line)
{
	const struct unit *unit = find_unit(lines, address - lines->bias);

	return unit && find_row(unit, address - lines->bias, file, line);
}

bool lines_unit(const struct lines *lines, uint64_t *address, Dwarf_Die *unit)
{
	const struct unit *found = find_unit(lines, *address - lines->bias);

	if (!found)
		return false;
	*address -= lines->bias;
	*unit = found->die;
	return true;
}

bool lines_are_there(const struct lines *lines)
{
	return lines->unit_count > 0;
}

bool lines_find(struct lines *lines, uint64_t address, const char **file,
		int *line)
{
	struct unit *unit;

	address -= lines->bias;
	unit = find_unit(lines, address);
	if (!unit)
		return false;
	if (!unit->listed)
		list_declarations(lines, unit);
	return find_declaration(lines, unit, address, file, line) ||
	       find_row(unit, address, file, line);
}
