/*
 * Nodes in the file of a tree with a key of four words.  They have data of profilers
 * about a path.
 *
 * Only its thread uses the table, but a signal handler may come at any time.  Then a
 * key may get two nodes, and a reader adds both.
 */
#ifndef NODE_MAP_H
#define NODE_MAP_H

#include "path/path.h"

#define NODE_MAP_WORDS 4

/* The beginning of each of these nodes. */
struct map_node {
	uint64_t function;
	uint64_t key[NODE_MAP_WORDS];
};

struct node_map {
	uint64_t shift;
	uint64_t used;
	struct map_node *slot[];
};

/* The node of @key, or NULL. */
struct map_node *node_map_find(const struct node_map *table,
			       const uint64_t key[NODE_MAP_WORDS]);

/* Adds a node of @size bytes to @tree's file and @table.  If @function is 0, the caller
 * stores the function when the node is complete.  Returns NULL without memory, and sets
 * lost_cause. */
struct map_node *node_map_add(struct node_map **table, struct tree *tree,
			      const uint64_t key[NODE_MAP_WORDS], size_t size,
			      uint64_t function);

/* Marks the word @number of each key with @generation if the word is in [@low,
 * @high). */
void node_map_image_gone(struct node_map *table, unsigned number, uintptr_t low,
			 uintptr_t high, uint64_t generation);

#endif
