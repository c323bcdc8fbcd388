/* Finds the functions that the command line names. */
#ifndef REPORT_MODEL_FIND_FUNCTIONS_H
#define REPORT_MODEL_FIND_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct function;
struct model;

/* Marks the functions that @name means; dies if there are none or the name is
 * ambiguous. */
bool *find_functions(const struct model *model, const char *name);

/* The length of @function's name without its group. */
size_t plain_length(const struct function *function, const char *name);

#endif
