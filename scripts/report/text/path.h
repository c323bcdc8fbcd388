/* A call path in a table. */
#ifndef REPORT_TEXT_PATH_H
#define REPORT_TEXT_PATH_H

#include <stdint.h>

struct layout;

/* From the outermost caller on. */
void memory_put_path(const struct layout *layout, uint32_t path);
/* The functions of a path, from the inside; from the outside as a list of
 * names, and as "name;name".  NONE is unknown: null, and empty. */
void path_print(const struct layout *layout, uint32_t path);

#endif
