/* Functions that the command line names. */
#ifndef REPORT_MODEL_FIND_FUNCTIONS_H
#define REPORT_MODEL_FIND_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct function;
struct model;

/* Which functions @name means; dies if that cannot be said. */
bool *find_functions(const struct model *model, const char *name);

/* How long a name of @function is without its group. */
size_t plain_length(const struct function *function, const char *name);

#endif
