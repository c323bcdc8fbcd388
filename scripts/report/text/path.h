/* A call path in a table. */
#ifndef REPORT_TEXT_PATH_H
#define REPORT_TEXT_PATH_H

#include <stddef.h>
#include <stdint.h>

struct layout;

/* From the outermost caller on. */
void memory_put_path(const struct layout *layout, uint32_t path);
/*
 * path_print - prints the functions of @path from the inside: "f < g < main"
 *
 * Callers that have no room are "...": @used columns of the line are taken, and a pipe has
 * lines like a wide terminal unless full or linker names are asked for.  NONE is unknown.
 */
void path_print(const struct layout *layout, uint32_t path, size_t used);

#endif
