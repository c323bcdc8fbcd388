/* Calls whose leave the engine may have missed (doubt.c). */
#ifndef PATH_DOUBT_H
#define PATH_DOUBT_H

#include "path/path.h"

/* Takes @node out of doubt: its call is being closed, or is known to be open. */
void node_trust(struct shim_node *node);

/* Puts @node in doubt: its leave may have been missed. */
void node_doubt(struct shim_node *node);

#endif
