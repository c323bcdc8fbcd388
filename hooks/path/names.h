/*
 * Names of functions in options.
 */
#ifndef PATH_NAMES_H
#define PATH_NAMES_H

#include <stdbool.h>

/* Whether the linker name @name is one that a user means by @wanted. */
bool path_is_named(const char *name, const char *wanted);

#endif
