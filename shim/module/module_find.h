/*
 * Where a module's library is found, and whether it fits (rows M-15 to M-17).
 */
#ifndef SHIM_MODULE_FIND_H
#define SHIM_MODULE_FIND_H

#include "module/module.h"

#define MODULE_PREFIX "libshim-profiler-"
#define MODULE_PATH_SIZE 4096

struct module_search {
	struct module *module;
	/* Why the first one that was there could not be taken. */
	char memory[512];
	struct text reason;
};

/*
 * Looks for the library of search->module, by its name or, if it is not empty,
 * at @path, and opens it.  What does not fit is passed over.
 */
bool module_find(struct module_search *search, const char *path);

/* The name of a module's init function. */
void module_init_name(const struct module *module, char name[128]);

void *module_symbol(void *library, const char *name);

#endif
