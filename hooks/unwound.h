/* Paths of calls that are not instrumented. */
#ifndef UNWOUND_H
#define UNWOUND_H

#include "calltree.h"

/* The node, below @root, of the functions that the calling thread is in: nobody's
 * calls are counted there.  @root itself if nothing is known; NULL sets
 * lost_cause. */
struct shim_node *unwound_find(struct tree *tree, struct shim_node *root);

/* The arguments of who has no others: "unwind", or none.  False: neither. */
bool unwound_read_arguments(const char *arguments, bool *unwinds);

#endif
