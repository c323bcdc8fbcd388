/*
 * The functions that were called, and how often.  One thread at a time looks, and calls these.
 */
#ifndef BUDGET_FUNCTIONS_H
#define BUDGET_FUNCTIONS_H

#include "path/nodes.h"

#include <stdbool.h>
#include <stdint.h>

struct function {
	uint64_t address;
	uint64_t calls, before; /* now, and at the last look */
	bool is_outermost;	/* in some stack */
	bool has_callees;
	bool is_chosen;
	bool is_throttled; /* is off, or was off before */
};

/* In the order in which they were found.  The array moves when it grows. */
extern struct function *functions;
extern uint32_t functions_count;

/* The function of a node that was noted before; else NULL. */
struct function *functions_find(const struct shim_node *node);
/* The function of a node, which is added; NULL if it may not be switched off, and without
 * memory. */
struct function *functions_note(struct shim_node *node);

/* Visits the nodes of all trees in the order of memory, which is much faster than the order of
 * the tables.  Nodes that other threads make meanwhile may be missed until the next look. */
typedef void functions_visitor(struct tree *tree, struct shim_node *node);
void functions_each_node(functions_visitor *visit);

#endif
