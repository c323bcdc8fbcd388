/*
 * Calls whose leave may have been missed (doubt.c).
 */
#ifndef PATH_DOUBT_H
#define PATH_DOUBT_H

#include "path/path.h"

/* Takes @node out of doubt: its call is being closed, or never ended. */
void node_trust(struct shim_node *node);

/* Puts @node in doubt: its leave may have been missed. */
void node_doubt(struct shim_node *node);

#endif
