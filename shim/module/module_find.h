/*
 * Finds a module's library and checks its version (rows M-15 to M-17).
 */
#ifndef SHIM_MODULE_FIND_H
#define SHIM_MODULE_FIND_H

#include "module/module.h"

#define MODULE_PREFIX	 "libshim-profiler-"
#define MODULE_PATH_SIZE 4096

struct module_search {
	struct module *module;
	/* The reason why the first library that was found does not fit. */
	char memory[512];
	struct text reason;
};

/*
 * Finds and opens the library of search->module: at @path, or by the module's name if
 * @path is empty.  Skips libraries that do not fit.
 */
bool module_find(struct module_search *search, const char *path);

/* The name of a module's init function. */
void module_init_name(const struct module *module, char name[128]);

/* The address of @name in a module's library, a handle of dlopen, or NULL. */
void *module_symbol(void *library, const char *name);

#endif
