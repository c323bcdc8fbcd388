/* Prints a call path in a table. */
#ifndef REPORT_TEXT_PATH_H
#define REPORT_TEXT_PATH_H

#include <stddef.h>
#include <stdint.h>

struct layout;

/* Prints the path, the outermost function first. */
void memory_put_path(const struct layout *layout, uint32_t path);
/*
 * path_print - print the functions of @path, the innermost first: "f < g <
 * main"
 *
 * Callers that do not fit become "...".  @used columns of the line are taken.
 * A pipe has lines like a wide terminal, unless full or linker names are
 * requested.  NONE is printed as unknown.
 */
void path_print(const struct layout *layout, uint32_t path, size_t used);

#endif
