/* Compares names of functions in options with linker names. */
#ifndef PATH_NAMES_H
#define PATH_NAMES_H

#include <stdbool.h>

/* Whether the user means the linker name @name by @wanted. */
bool path_is_named(const char *name, const char *wanted);

#endif
