/*
 * Where calltree_x86_64.S and trace_x86_64.S find what they need of structs, in bytes;
 * calltree.c asserts it.
 */
#ifndef CALLTREE_LAYOUT_H
#define CALLTREE_LAYOUT_H

#define LAYOUT_HOT_CURRENT    0
#define LAYOUT_HOT_BELOW      8
#define LAYOUT_HOT_CACHE_MASK 16
#define LAYOUT_HOT_CACHE      24
#define LAYOUT_HOT_TRACE      56

#define LAYOUT_NODE_FUNCTION 0
#define LAYOUT_NODE_PARENT   8
#define LAYOUT_NODE_CALLS    16
#define LAYOUT_NODE_TIME     24
#define LAYOUT_NODE_START    32
#define LAYOUT_NODE_FRAME    40
#define LAYOUT_NODE_HITS     48
#define LAYOUT_NODE_EXTRA    56

#define LAYOUT_EXTRA_LAST	64
#define LAYOUT_EXTRA_RANGE_LOW	72
#define LAYOUT_EXTRA_RANGE_SPAN 80
#define LAYOUT_EXTRA_BUCKET	88	/* without the short ones */
#define LAYOUT_SHORT_BUCKETS	4

#define LAYOUT_TRACE_CURSOR    0
#define LAYOUT_TRACE_LIMIT     8
#define LAYOUT_TRACE_LAST      16
#define LAYOUT_TRACE_BUSY      24
#define LAYOUT_TRACE_WORD      32
#define LAYOUT_TRACE_BECOMES   40
#define LAYOUT_TRACE_SETTLED   48
#define LAYOUT_TRACE_TIME_MASK 0x7fff

#endif
