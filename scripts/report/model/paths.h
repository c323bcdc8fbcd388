/* The functions of a call path. */
#ifndef REPORT_MODEL_PATHS_H
#define REPORT_MODEL_PATHS_H

#include <stdbool.h>
#include <stdint.h>

struct model;
struct options;

/* In the table of functions: memory that no instrumented function allocated. */
#define MEMORY_OUTSIDE "(not in an instrumented function)"

/* The name of the innermost function of @path. */
const char *path_name(const struct model *model, uint32_t path,
		      const struct options *options);

/* Whether @path has no function. */
bool path_is_root(const struct model *model, uint32_t path);

/* The paths from the outermost call to @path, without the root; free() it. */
uint32_t *path_list(const struct model *model, uint32_t path, uint32_t *count);

#endif
