/*
 * The built-in profilers, which are part of libshim.so (../hooks), by name.  The linker
 * collects them in a list (<shim/builtin.h>), so nothing here names one.
 */
#ifndef SHIM_MODULE_BUILTIN_H
#define SHIM_MODULE_BUILTIN_H

enum builtin_found {
	BUILTIN_UNKNOWN,
	BUILTIN_STOPPED,
	BUILTIN_STARTED,
	BUILTIN_TOO_LATE, /* stopped, and only starts with shim itself */
};

enum builtin_found builtin_find(const char *profile);

/*
 * builtin_start - starts NAME[:ARGUMENTS]; each profiler starts once
 *
 * Returns 0; 1 if it was started before; -1 if there is none of that name; -2 if its
 * arguments are wrong; -3 if it cannot be started, and the log says why.
 */
int builtin_start(const char *profile);

/* Calls `begin` of the started profilers; called after a group of them was started. */
void builtin_begin(void);

#endif
