/* The call paths below some functions, or to them, as trees of their own. */
#ifndef REPORT_MODEL_SUBTREE_H
#define REPORT_MODEL_SUBTREE_H

#include <stdbool.h>
#include <stdint.h>

struct model;

/*
 * subtree_of - a model with the paths below the functions @wanted, or those that lead there
 *
 * @callers: below a function are its callers, below them theirs; each has the calls, the
 * self time and the total of the function on this way.  A total in recursion counts once.
 * Callers are listed down to @depth.  The same goes for memory.
 * Everything but paths and their memory is @model's.  The caller calls subtree_free().
 */
struct model subtree_of(const struct model *model, const bool *wanted,
			bool callers, uint32_t depth);
void subtree_free(struct model *tree);

#endif
