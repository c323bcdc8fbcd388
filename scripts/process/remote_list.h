/* The objects that the dynamic linker has loaded for a program. */
#ifndef PROCESS_REMOTE_LIST_H
#define PROCESS_REMOTE_LIST_H

#include <stdbool.h>

#include "process/remote.h"
#include "process/space.h"

/* Whether @module is among the program's own objects: not in a namespace of its own
 * (dlmopen).  True if the list cannot be read. */
bool remote_is_listed(const struct remote *remote, const struct space *space,
		      const struct module *module);

#endif
