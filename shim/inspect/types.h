/*
 * Types and names of parameters: what libshim-debuginfo.so told, kept.
 *
 * A type is kept once, whoever it was found by, and for ever; so its number can
 * be checked, and objects that come and go do not add to them.
 */
#ifndef SHIM_TYPES_H
#define SHIM_TYPES_H

#include <shim/typetree.h>

/* What @type stands for, or NULL.  Async. */
const struct shim_typetree *types_find(shim_type type);

/* The type that looks like this, a new one if there is none; 0: @tree, of which
 * there are @size bytes, is damaged, or there is no memory.  State lock held. */
shim_type types_keep(const struct shim_typetree *tree, size_t size);

#endif
