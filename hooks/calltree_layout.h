/*
 * Where calltree_x86_64.S finds what it needs of struct hot and struct shim_node, in
 * bytes; calltree.c asserts it.
 */
#ifndef CALLTREE_LAYOUT_H
#define CALLTREE_LAYOUT_H

#define LAYOUT_HOT_CURRENT    0
#define LAYOUT_HOT_BELOW      8
#define LAYOUT_HOT_CACHE_MASK 16
#define LAYOUT_HOT_CACHE      24

#define LAYOUT_NODE_FUNCTION 0
#define LAYOUT_NODE_PARENT   8
#define LAYOUT_NODE_CALLS    16
#define LAYOUT_NODE_FRAME    40

#endif
