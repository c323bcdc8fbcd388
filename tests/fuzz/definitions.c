/*
 * definitions FILE - checks that no definition of a class in FILE is overlooked
 *
 * Asks shim/inspect/debuginfo/definitions.c for each unit and all classes of
 * all units, and compares the result with a walk over the unit.  For at least
 * half of the classes that are only declared, the answer must be "no": an index
 * that always says "yes" would save nothing.
 */
#include "../../shim/inspect/debuginfo/definitions.h"

#include <dwarf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CLASSES_MAX 256
#define DEPTH_MAX   32
#define ROOM	    256
#define PLACES_MAX  16

struct class
{
	char name[ROOM];
	Dwarf_Off unit, offset;
};

static struct class defined[CLASSES_MAX];
static unsigned defined_count;

static void read_classes(Dwarf_Die *parent, Dwarf_Off unit, const char *prefix,
			 unsigned depth)
{
	char name[ROOM];
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		int tag = dwarf_tag(&die);
		const char *own = dwarf_diename(&die);

		if (!own ||
		    (tag != DW_TAG_namespace && !definitions_is_class(tag)))
			continue;
		if (snprintf(name, sizeof(name), "%s%s", prefix, own) >=
		    ROOM - 2)
			continue;
		if (tag != DW_TAG_namespace &&
		    !dwarf_hasattr(&die, DW_AT_declaration) &&
		    defined_count < CLASSES_MAX) {
			strcpy(defined[defined_count].name, name);
			defined[defined_count].offset = dwarf_dieoffset(&die);
			defined[defined_count++].unit = unit;
		}
		strcat(name, "::");
		read_classes(&die, unit, name, depth + 1);
	} while (dwarf_siblingof(&die, &die) == 0);
}

static bool is_defined(const char *name, Dwarf_Off unit)
{
	for (unsigned i = 0; i < defined_count; i++)
		if (defined[i].unit == unit &&
		    strcmp(defined[i].name, name) == 0)
			return true;
	return false;
}

/* Whether all definitions of that name in @unit are at one of the @places. */
static bool is_among(const char *name, Dwarf_Off unit, const Dwarf_Off *offsets,
		     size_t places)
{
	for (unsigned i = 0; i < defined_count; i++) {
		bool is_there = places == DEFINITIONS_UNKNOWN;

		if (defined[i].unit != unit ||
		    strcmp(defined[i].name, name) != 0)
			continue;
		for (size_t j = 0; j < places && !is_there; j++)
			is_there = offsets[j] == defined[i].offset;
		if (!is_there)
			return false;
	}
	return true;
}

int main(int count, char **arguments)
{
	unsigned overlooked = 0, absent = 0, denied = 0, located = 0;
	Dwarf_Off offsets[PLACES_MAX];
	int fd = count == 2 ? open(arguments[1], O_RDONLY) : -1;
	Dwarf *dwarf = fd < 0 ? NULL : dwarf_begin(fd, DWARF_C_READ);
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	while (dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0)
		read_classes(&unit, dwarf_dieoffset(&unit), "", 0);
	cu = NULL;
	while (dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0) {
		for (unsigned i = 0; i < defined_count; i++) {
			const char *name = defined[i].name;
			size_t places = definitions_find(&unit, name,
							 PLACES_MAX, offsets);
			bool is_found;

			if (!is_defined(name, dwarf_dieoffset(&unit))) {
				absent++;
				denied += places == 0;
				continue;
			}
			is_found = is_among(name, dwarf_dieoffset(&unit),
					    offsets, places);
			if (!is_found)
				printf("overlooked: %s\n", name);
			overlooked += !is_found;
			located += is_found && places != DEFINITIONS_UNKNOWN;
		}
	}
	printf("%u definitions, %u located, %u overlooked; %u absent, %u known to "
	       "be\n",
	       defined_count, located, overlooked, absent, denied);
	dwarf_end(dwarf);
	close(fd);
	return defined_count == 0 || absent == 0 || overlooked > 0 ||
	       denied < absent / 2 || located < defined_count / 2;
}
