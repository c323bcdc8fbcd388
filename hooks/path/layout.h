/*
 * Offsets of fields in bytes, for calls_x86_64.S and the assembly of a profiler that
 * writes calls.  calls.c asserts them.
 */
#ifndef PATH_LAYOUT_H
#define PATH_LAYOUT_H

#define LAYOUT_HOT_CURRENT    0
#define LAYOUT_HOT_BELOW      8
#define LAYOUT_HOT_CACHE_MASK 16
#define LAYOUT_HOT_CACHE      24
#define LAYOUT_HOT_TICK	      32
#define LAYOUT_HOT_LAST	      40
#define LAYOUT_HOT_CLOCK      48
#define LAYOUT_HOT_TRACE      64

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
#define LAYOUT_EXTRA_BUCKET	88 /* without the short buckets */
#define LAYOUT_SHORT_BUCKETS	4

#endif
