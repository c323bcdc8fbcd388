/*
 * The parts of a C++ linker name: "a", "Class", "run" for _ZN1a5Class3runEv; and of Fortran's
 * procedures in modules: "shapes", "twice" for __shapes_MOD_twice.
 */
#ifndef SHIM_NAME_PARTS_H
#define SHIM_NAME_PARTS_H

#include <stddef.h>

#define NAME_PARTS_MAX 16

struct name_part {
	const char *text;
	size_t length;
};

/*
 * Splits @name, without template arguments; returns the number of parts, 0 if it is no such
 * name or damaged.  An operator's part is "operator".  The parts point into @name.  Async.
 */
unsigned name_parts(const char *name, struct name_part parts[NAME_PARTS_MAX]);

#endif
