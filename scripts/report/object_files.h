/*
 * What symbols.c has of an object, for the files that know elfutils as well.
 */
#ifndef REPORT_OBJECT_FILES_H
#define REPORT_OBJECT_FILES_H

#include <elfutils/libdwfl.h>
#include <gelf.h>

#include "symbols.h"

struct object_files {
	Dwfl *dwfl;
	Dwfl_Module *module;
	struct lines *lines;
};

/* NULL: it is not there, or is another build. */
struct object_files *symbols_open(struct object *object);

/* Whether this is a function, and how long its name is without a version. */
bool symbols_is_function(const GElf_Sym *symbol, const char *name);
size_t symbols_name_length(const char *name);

/* The one that begins at @address among @count that are sorted, or NULL. */
struct symbol *symbols_at(struct symbol *symbols, size_t count,
			  uint64_t address);

#endif
