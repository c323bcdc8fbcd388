/*
 * Compiles types into the nodes of a type tree.  For typetree.c and typetree_library.c.
 */
#ifndef SHIM_DEBUGINFO_COMPILE_H
#define SHIM_DEBUGINFO_COMPILE_H

#include "inspect/debuginfo/builder.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/* The position in the tree: the level of classes, and the level in all. */
struct place {
	unsigned level, depth;
	bool is_pointee;
};

/* Adds a node for @type, NULL for void; unsupported types are SHIM_TYPE_UNKNOWN.
 * Returns its index.  Adding nodes may move the others. */
uint32_t typetree_compile(struct builder *builder, Dwarf_Die *type,
			  struct place place);

/* Compiles @class into @node if it is a class of the C++ library with a special form.
 * Returns false for other classes. */
bool typetree_compile_library(struct builder *builder, uint32_t node,
			      Dwarf_Die *class, struct place place);

#endif
