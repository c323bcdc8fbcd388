/*
 * The list of profilers in SHIM_PROFILE, "a:x;b:y".
 */
#ifndef SHIM_BUILTIN_LIST_H
#define SHIM_BUILTIN_LIST_H

#include <stdbool.h>

/* Starts those that are part of the library.  0, or -1 if nothing is left to
 * start either: then the log says so.  State lock held. */
int builtin_list_start(void);

/* Whether there are others in the list.  Before builtin_list_start. */
bool builtin_list_has_modules(void);

/* Whether one of those runs. */
bool builtin_list_has_any(void);

/* The item after @item, or the first for NULL, of those that are modules, in the
 * order they were given; NULL at the end.  They live as long as the process. */
const char *builtin_list_next(const char *item);

#endif
