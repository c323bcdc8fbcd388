/*
 * Stores types and names of parameters as libshim-debuginfo.so describes them.
 *
 * Each type is stored once and never freed.  So shim can check a type's number, and
 * objects that are loaded repeatedly add no further types.
 */
#ifndef SHIM_TYPES_H
#define SHIM_TYPES_H

#include <shim/typetree.h>

/* The tree of @type; NULL if @type is invalid.  Async. */
const struct shim_typetree *types_find(shim_type type);

/* The type with this tree, which is new if no type has it.  0 without memory, or if
 * @tree, of @size bytes, is damaged.  State lock held. */
shim_type types_keep(const struct shim_typetree *tree, size_t size);

#endif
