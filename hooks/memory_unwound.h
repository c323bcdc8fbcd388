/* Paths of calls that are not instrumented. */
#ifndef MEMORY_UNWOUND_H
#define MEMORY_UNWOUND_H

#include "calltree.h"

/* The node, below @root, of the functions that the calling thread is in: nobody's
 * calls are counted there.  @root itself if nothing is known; NULL sets
 * lost_cause. */
struct shim_node *unwound_find(struct tree *tree, struct shim_node *root);

#endif
