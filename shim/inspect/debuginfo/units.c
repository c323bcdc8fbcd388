/*
 * Finds the compilation unit of an address.  Reads the ranges of all units of a file
 * once, and sorts them by start.  Ranges may overlap, so each entry stores the furthest
 * end of the earlier ones, which bounds the search.  (.debug_aranges is often missing:
 * clang does not write it.)
 */
#include "inspect/debuginfo/units.h"

#include <dwarf.h>
#include <stdlib.h>

/* A range of a unit, in a list for each file, sorted by start. */
struct span {
	Dwarf_Addr start, end;
	Dwarf_Addr furthest; /* the largest end of this and earlier ranges */
	Dwarf_Off unit;	     /* offset of the unit's DIE */
};

#define FILES_MAX 4 /* calls alternate between a program's libraries */

struct file {
	Dwarf *dwarf; /* NULL: not read */
	struct span *spans;
	size_t count, room;
};

static struct file files[FILES_MAX];
static unsigned next;

static bool add_span(struct file *file, const struct span *span)
{
	if (file->count == file->room) {
		size_t room = file->room ? file->room * 2 : 256;
		void *larger = realloc(file->spans, room * sizeof(*span));

		if (!larger)
			return false;
		file->spans = larger;
		file->room = room;
	}
	file->spans[file->count++] = *span;
	return true;
}

static void add_unit(struct file *file, Dwarf_Die *unit)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(unit, at, &base, &start, &end)) > 0) {
		struct span span = { start, end, end, dwarf_dieoffset(unit) };

		if (start < end && !add_span(file, &span))
			return;
	}
}

static int by_start(const void *a, const void *b)
{
	const struct span *first = a, *second = b;

	return (first->start > second->start) - (first->start < second->start);
}

static void read_ranges(struct file *file)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;
	uint8_t type;

	file->count = 0;
	while (dwarf_get_units(file->dwarf, cu, &cu, NULL, &type, &unit,
			       NULL) == 0)
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			add_unit(file, &unit);
	if (file->count > 0)
		qsort(file->spans, file->count, sizeof(*file->spans), by_start);
	for (size_t i = 1; i < file->count; i++)
		if (file->spans[i].furthest < file->spans[i - 1].furthest)
			file->spans[i].furthest = file->spans[i - 1].furthest;
}

static const struct file *find_file(Dwarf *dwarf)
{
	struct file *file;

	for (unsigned i = 0; i < FILES_MAX; i++)
		if (files[i].dwarf == dwarf)
			return &files[i];
	file = &files[next++ % FILES_MAX];
	file->dwarf = dwarf;
	read_ranges(file);
	return file;
}

/* Several units may cover an address, because the linker merges equal functions. */
static bool find_in_file(const struct file *file, uint64_t address,
			 Dwarf_Off *unit)
{
	size_t low = 0, high = file->count;
	bool is_found = false;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (file->spans[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	while (low-- > 0 && file->spans[low].furthest > address)
		if (file->spans[low].end > address &&
		    (!is_found || file->spans[low].unit < *unit)) {
			*unit = file->spans[low].unit;
			is_found = true;
		}
	return is_found;
}

/* Searches .debug_aranges first, which needs no reading of units but is often missing
 * (clang). */
bool units_find(Dwarf *dwarf, uint64_t address, Dwarf_Die *unit)
{
	Dwarf_Off at;

	return dwarf && (dwarf_addrdie(dwarf, address, unit) ||
			 (find_in_file(find_file(dwarf), address, &at) &&
			  dwarf_offdie(dwarf, at, unit)));
}

void units_forget(void)
{
	for (unsigned i = 0; i < FILES_MAX; i++)
		files[i].dwarf = NULL;
}
