/* The callers and the callees of functions, added up. */
#ifndef REPORT_MODEL_NEIGHBOURS_H
#define REPORT_MODEL_NEIGHBOURS_H

#include <stdbool.h>

struct model;
struct sums;

/*
 * neighbours_of - sums by the callers of the functions @wanted, or by their callees
 *
 * Returns an array by function; its last element, number function_count, is for calls
 * without a caller.  The caller frees it.
 */
struct sums *neighbours_of(const struct model *model, const bool *wanted,
			   bool callers);

#endif
