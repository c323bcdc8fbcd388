/*
 * Nodes that are found by four words, in the file of a tree: what profilers keep of a
 * path beside the calls.
 *
 * The table is its thread's alone, but a signal handler may come at any time: then a
 * key may get two nodes, which a reader adds.
 */
#ifndef KEYED_H
#define KEYED_H

#include "calltree.h"

#define KEYED_WORDS 4

/* How each of them begins. */
struct keyed_node {
	uint64_t function;
	uint64_t key[KEYED_WORDS];
};

struct keyed_table {
	uint64_t shift;
	uint64_t used;
	struct keyed_node *slot[];
};

/* The node of @key, or NULL. */
struct keyed_node *keyed_find(const struct keyed_table *table,
			      const uint64_t key[KEYED_WORDS]);

/* A new one of @size bytes, in @tree's file and @table; @function 0: the caller says
 * what it is when it is whole.  NULL sets lost_cause. */
struct keyed_node *keyed_make(struct keyed_table **table, struct tree *tree,
			      const uint64_t key[KEYED_WORDS], size_t size,
			      uint64_t function);

/* Gives those whose word @number is in [@low, @high) a generation there. */
void keyed_image_gone(struct keyed_table *table, unsigned number,
		      uintptr_t low, uintptr_t high, uint64_t generation);

#endif
