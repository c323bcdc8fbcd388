/*
 * Finds the functions of a compilation unit in one pass.  Most functions are outermost
 * or in namespaces; the pass enters other DIEs only if it has not found the function.
 */
#include "inspect/debuginfo/unit.h"

#include <dwarf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64 /* damaged debug information may have cycles */
#define OPEN	  UINT64_MAX

/* The start of a function.  A function with several parts has an entry for each
 * part. */
struct function {
	Dwarf_Addr address;
	Dwarf_Die die;
};

/* The depth to which a unit was read.  Almost all functions are outermost or in
 * namespaces. Functions of local classes are inside functions.  Compilers usually put
 * the definitions of members after their class. */
enum depth {
	DEPTH_NOTHING,
	DEPTH_OUTERMOST,
	DEPTH_FUNCTIONS,
	DEPTH_ALL,
};

struct unit {
	Dwarf_CU *cu;
	struct unit_scope *scopes;
	struct function *functions; /* by address */
	Dwarf_Off *classes;	    /* outermost, or in namespaces */
	size_t scope_count, scope_room, function_count, function_room;
	size_t class_count, class_room;
	enum depth depth;
};

/* The units of one file that were read. */
static struct {
	struct unit *units;
	size_t count, room;
} cache;

/* --- lists that grow --- */

static void *add_element(void **list, size_t *count, size_t *room,
			 size_t element)
{
	if (*count == *room) {
		size_t larger = *room ? *room * 2 : 64;
		void *moved = realloc(*list, larger * element);

		if (!moved)
			return NULL;
		*list = moved;
		*room = larger;
	}
	return (char *)*list + element * (*count)++;
}

static void add_start(struct unit *unit, Dwarf_Die *die, Dwarf_Addr address)
{
	struct function *function = add_element(
		(void **)&unit->functions, &unit->function_count,
		&unit->function_room, sizeof(*function));

	if (function)
		*function = (struct function){ address, *die };
}

static void add_function(struct unit *unit, Dwarf_Die *die)
{
	Dwarf_Addr low, base, start, end;
	ptrdiff_t at = 0;
	bool has_low = dwarf_entrypc(die, &low) == 0;

	if (has_low)
		add_start(unit, die, low);
	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0)
		if (!has_low || start != low)
			add_start(unit, die, start);
}

static void add_scope(struct unit *unit, Dwarf_Die *die)
{
	struct unit_scope *scope = add_element(
		(void **)&unit->scopes, &unit->scope_count, &unit->scope_room,
		sizeof(*scope));

	if (scope)
		*scope = (struct unit_scope){ dwarf_dieoffset(die), OPEN,
					      *die };
}

/* A scope ends at the next DIE outside. */
static void close_scopes(struct unit *unit, size_t first, Dwarf_Off end)
{
	for (size_t i = first; i < unit->scope_count; i++)
		if (unit->scopes[i].end == OPEN)
			unit->scopes[i].end = end;
}

/* --- kinds of DIEs --- */

#define KINDS 256

/* Stores which attributes all DIEs of an abbreviation have: most DIEs of C++ are
 * declarations of functions, which are skipped faster so. */
struct kind {
	const Dwarf_Abbrev *abbreviation;
	bool has_code, is_declared;
};

static struct kind kinds[KINDS];

/* The kind of a DIE.  The caller must have read its tag. */
static const struct kind *kind_of(Dwarf_Die *die)
{
	struct kind *kind = &kinds[(uintptr_t)die->abbrev / 8 % KINDS];

	if (kind->abbreviation != die->abbrev || !die->abbrev) {
		kind->abbreviation = die->abbrev;
		kind->has_code = dwarf_hasattr(die, DW_AT_low_pc) ||
				 dwarf_hasattr(die, DW_AT_entry_pc) ||
				 dwarf_hasattr(die, DW_AT_ranges);
		kind->is_declared = dwarf_hasattr(die, DW_AT_declaration);
	}
	return kind;
}

/* --- reading a unit --- */

static void add_class(struct unit *unit, Dwarf_Die *die)
{
	Dwarf_Off *offset = add_element((void **)&unit->classes,
					&unit->class_count, &unit->class_room,
					sizeof(*offset));

	if (offset)
		*offset = dwarf_dieoffset(die);
}

static bool enter_class(struct unit *unit, Dwarf_Die *die)
{
	if (unit->depth == DEPTH_ALL)
		add_scope(unit, die);
	return unit->depth == DEPTH_ALL;
}

/* Returns whether the function may contain further functions. */
static bool enter_function(struct unit *unit, Dwarf_Die *die)
{
	const struct kind *kind = kind_of(die);

	if (kind->has_code)
		add_function(unit, die);
	return unit->depth >= DEPTH_FUNCTIONS &&
	       (kind->has_code || !kind->is_declared);
}

static bool is_outermost(Dwarf_Die *parent)
{
	int tag = dwarf_tag(parent);

	return tag == DW_TAG_compile_unit || tag == DW_TAG_namespace;
}

static void read_children(struct unit *unit, Dwarf_Die *parent, unsigned depth)
{
	bool notes_classes = is_outermost(parent);
	size_t first = unit->scope_count;
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		close_scopes(unit, first, dwarf_dieoffset(&die));
		first = unit->scope_count;
		switch (dwarf_tag(&die)) {
		case DW_TAG_namespace: add_scope(unit, &die); break;
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
			if (notes_classes)
				add_class(unit, &die);
			if (!enter_class(unit, &die))
				continue;
			break;
		case DW_TAG_subprogram:
			if (!enter_function(unit, &die))
				continue;
			break;
		case DW_TAG_module: /* of Fortran */
		case DW_TAG_lexical_block: break;
		default: continue;
		}
		/* A local class may have functions, too. */
		read_children(unit, &die, depth + 1);
	} while (dwarf_siblingof(&die, &die) == 0);
}

static int by_address(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	/* qsort is not stable, so equal addresses are ordered by their DIEs. */
	return (x->die.addr > y->die.addr) - (x->die.addr < y->die.addr);
}

static void read_unit(struct unit *unit, Dwarf_Die *root, enum depth depth)
{
	unit->scope_count = unit->function_count = unit->class_count = 0;
	unit->depth = depth;
	read_children(unit, root, 0);
	if (unit->function_count > 0)
		qsort(unit->functions, unit->function_count,
		      sizeof(*unit->functions), by_address);
}

static struct unit *find_read_unit(Dwarf_Die *die)
{
	struct unit *unit;

	for (size_t i = 0; i < cache.count; i++)
		if (cache.units[i].cu == die->cu)
			return &cache.units[i];
	unit = add_element((void **)&cache.units, &cache.count, &cache.room,
			   sizeof(*unit));
	if (unit) {
		memset(unit, 0, sizeof(*unit));
		unit->cu = die->cu;
	}
	return unit;
}

static const struct unit *read_unit_to(Dwarf_Die *die, enum depth depth)
{
	struct unit *unit;
	Dwarf_Die root;

	if (!dwarf_diecu(die, &root, NULL, NULL))
		return NULL;
	unit = find_read_unit(die);
	if (unit && unit->depth < depth)
		read_unit(unit, &root, depth);
	return unit;
}

size_t unit_scopes(Dwarf_Die *die, const struct unit_scope **scopes)
{
	const struct unit *unit = read_unit_to(die, DEPTH_ALL);

	*scopes = unit ? unit->scopes : NULL;
	return unit ? unit->scope_count : 0;
}

size_t unit_namespaces(Dwarf_Die *die, const struct unit_scope **scopes)
{
	const struct unit *unit = read_unit_to(die, DEPTH_OUTERMOST);

	*scopes = unit ? unit->scopes : NULL;
	return unit ? unit->scope_count : 0;
}

bool unit_is_outermost(Dwarf_Die *class)
{
	const struct unit *unit = read_unit_to(class, DEPTH_OUTERMOST);
	Dwarf_Off offset = dwarf_dieoffset(class);
	size_t low = 0, high = unit ? unit->class_count : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (unit->classes[middle] < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return unit && low < unit->class_count && unit->classes[low] == offset;
}

void unit_read(Dwarf_Die *unit)
{
	read_unit_to(unit, DEPTH_OUTERMOST);
}

/* The index of the first function that does not begin before @address. */
static size_t find_first(const struct unit *in, Dwarf_Addr address)
{
	size_t low = 0, high = in ? in->function_count : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (in->functions[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool unit_find_around(Dwarf_Die *unit, Dwarf_Addr address, Dwarf_Die *function)
{
	const struct unit *in = read_unit_to(unit, DEPTH_OUTERMOST);
	size_t behind = find_first(in, address + 1);

	if (behind == 0)
		return false;
	*function = in->functions[behind - 1].die;
	return dwarf_haspc(function, address) > 0;
}

static bool find_in(const struct unit *in, Dwarf_Addr address,
		    Dwarf_Die *function)
{
	size_t low = find_first(in, address);

	if (!in || low == in->function_count ||
	    in->functions[low].address != address)
		return false;
	*function = in->functions[low].die;
	return true;
}

bool unit_find_function(Dwarf_Die *unit, Dwarf_Addr address,
			Dwarf_Die *function)
{
	for (enum depth depth = DEPTH_OUTERMOST; depth <= DEPTH_ALL; depth++)
		if (find_in(read_unit_to(unit, depth), address, function))
			return true;
	return false;
}

void unit_forget(void)
{
	for (size_t i = 0; i < cache.count; i++) {
		free(cache.units[i].scopes);
		free(cache.units[i].functions);
		free(cache.units[i].classes);
	}
	cache.count = 0;
	memset(kinds, 0, sizeof(kinds));
}
