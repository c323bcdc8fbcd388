/* Paths of calls in code without instrumentation. */
#ifndef PATH_UNWIND_H
#define PATH_UNWIND_H

#include "path/path.h"

/* The node below @root for the call stack of the calling thread.  It counts no calls.
 * Returns @root itself if the stack is not known; NULL sets lost_cause. */
struct shim_node *path_unwind(struct tree *tree, struct shim_node *root);

#endif
