/*
 * definitions FILE - no definition of a class in FILE is overlooked
 *
 * Asks shim/debuginfo/definitions.c of each unit for all classes of all units,
 * and compares with a walk.  Where classes are only declared it has to say so
 * of half of them, at least: what always says yes saves nothing.
 */
#include "../../shim/debuginfo/definitions.h"

#include <dwarf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CLASSES_MAX 256
#define DEPTH_MAX 32
#define ROOM 256

struct class
{
	char name[ROOM];
	Dwarf_Off unit;
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

int main(int count, char **arguments)
{
	unsigned overlooked = 0, absent = 0, denied = 0;
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
			bool may_be = definitions_may_be_in(&unit, name);

			if (is_defined(name, dwarf_dieoffset(&unit))) {
				if (!may_be)
					printf("overlooked: %s\n", name);
				overlooked += !may_be;
			} else {
				absent++;
				denied += !may_be;
			}
		}
	}
	printf("%u definitions, %u overlooked; %u absent, %u known to be\n",
	       defined_count, overlooked, absent, denied);
	dwarf_end(dwarf);
	close(fd);
	return defined_count == 0 || absent == 0 || overlooked > 0 ||
	       denied < absent / 2;
}
