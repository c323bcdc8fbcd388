/* Handles events other than calls. */
#ifndef PATH_EVENTS_H
#define PATH_EVENTS_H

#include <shim/profiler.h>

/* Sets the callbacks for all events of the engine. */
void tree_listen(struct shim_profiler_handle *handle);

#endif
