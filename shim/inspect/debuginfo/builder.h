/*
 * A struct shim_typetree under construction.
 */
#ifndef SHIM_DEBUGINFO_BUILDER_H
#define SHIM_DEBUGINFO_BUILDER_H

#include "inspect/debuginfo/typetree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct builder {
	struct shim_typetree_node *nodes;
	struct shim_typetree_part *parts;
	char *text;
	size_t node_count, node_room, part_count, part_room;
	size_t text_size, text_room;
	bool is_full;	 /* a limit of the tree is reached */
	bool has_failed; /* memory ran out */
};

/* Begins the next tree.  The memory of the last one is reused. */
void builder_begin(struct builder *builder);

/* Whether all additions succeeded so far. */
bool builder_has_room(const struct builder *builder);

/* Adds a node of kind SHIM_TYPE_UNKNOWN and returns its index.  The other nodes may
 * move. */
uint32_t builder_add_node(struct builder *builder);

/* Gives @node @count parts of zeroes and returns the index of the first. */
uint32_t builder_add_parts(struct builder *builder, uint32_t node,
			   size_t count);

/* Adds @text, which may be NULL, and returns its offset. */
uint32_t builder_add_text(struct builder *builder, const char *text);

/* Appends the tree to @list, as a value of name @name; false without memory. */
bool builder_append(struct typetree_list *list, const struct builder *builder,
		    const char *name);

#endif
