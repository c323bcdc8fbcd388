/*
 * Reads the dynamic linker's list of objects in another process.  A library may be there
 * twice: shim loads libdw, for coverage, with a C library of its own, in which no thread
 * of the program runs.
 */
#include "process/remote_list.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "process/remote_symbols.h"

#define OBJECTS_MAX 65536 /* the list may change while it is read */

static uint64_t find_linker(const struct remote *remote,
			    const struct space *space)
{
	uint64_t found = 0;
	uint32_t i;

	for (i = 0; i < space->module_count && !found; i++)
		if (!strncmp(space->modules[i].name, "ld-", 3))
			found = remote_symbol(remote, space->modules[i].start,
					      "_r_debug");
	return found;
}

bool remote_is_listed(const struct remote *remote, const struct space *space,
		      const struct module *module)
{
	uint64_t at = find_linker(remote, space), next;
	struct r_debug list;
	struct link_map object;
	unsigned i;

	if (!at || !remote_read(remote, at, &list, sizeof(list)))
		return true;
	next = (uint64_t)list.r_map;
	for (i = 0; next && i < OBJECTS_MAX; i++) {
		if (!remote_read(remote, next, &object, sizeof(object)))
			return true;
		if ((uint64_t)object.l_ld - module->start <
		    module->end - module->start)
			return true;
		next = (uint64_t)object.l_next;
	}
	return false;
}
