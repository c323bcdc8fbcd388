/*
 * Compiles types into the nodes of a type tree; for typetree.c and typetree_library.c.
 */
#ifndef SHIM_DEBUGINFO_COMPILE_H
#define SHIM_DEBUGINFO_COMPILE_H

#include "inspect/debuginfo/builder.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/* The position in the tree: levels of classes, and levels in all. */
struct place {
	unsigned level, depth;
	bool is_pointee;
};

/* Adds a node for @type, NULL for void; unsupported types are SHIM_TYPE_UNKNOWN.
 * Returns its index.  Nodes move when more are added. */
uint32_t typetree_compile(struct builder *builder, Dwarf_Die *type,
			  struct place place);

/* Compiles @class into @node if it is a class of the C++ library with a form of its
 * own; else returns false. */
bool typetree_compile_library(struct builder *builder, uint32_t node,
			      Dwarf_Die *class, struct place place);

#endif
