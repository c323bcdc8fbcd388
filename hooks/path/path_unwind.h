/* Finds paths of calls in code without instrumentation. */
#ifndef PATH_UNWIND_H
#define PATH_UNWIND_H

#include "path/path.h"

/* Returns the node below @root for the call stack of the calling thread, which counts
 * no calls.  Returns @root itself if the stack is unknown; NULL without memory, and
 * sets lost_cause. */
struct shim_node *path_unwind(struct tree *tree, struct shim_node *root);

#endif
