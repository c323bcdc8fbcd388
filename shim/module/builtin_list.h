/*
 * The list of profilers in SHIM_PROFILE, "a:x;b:y".
 */
#ifndef SHIM_BUILTIN_LIST_H
#define SHIM_BUILTIN_LIST_H

#include <stdbool.h>

/* Starts the built-in profilers of the list.  Returns 0; -1, with a line in the log, if
 * none runs and the list has no modules.  State lock held. */
int builtin_list_start(void);

/* Whether the list has modules.  Called before builtin_list_start. */
bool builtin_list_has_modules(void);

/* Whether a built-in profiler of the list runs. */
bool builtin_list_has_any(void);

/* The module after @item in the list; for NULL, the first; NULL at the end.  The
 * strings exist as long as the process. */
const char *builtin_list_next(const char *item);

#endif
