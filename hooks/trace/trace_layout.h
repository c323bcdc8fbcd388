/* Offsets in struct trace in bytes, for trace_x86_64.S.  trace_hooks.c asserts them. */
#ifndef TRACE_LAYOUT_H
#define TRACE_LAYOUT_H

#define LAYOUT_TRACE_CURSOR    0
#define LAYOUT_TRACE_LIMIT     8
#define LAYOUT_TRACE_LAST      16
#define LAYOUT_TRACE_BUSY      24
#define LAYOUT_TRACE_WORD      32
#define LAYOUT_TRACE_BECOMES   40
#define LAYOUT_TRACE_SETTLED   48
#define LAYOUT_TRACE_TIME_MASK 0x7fff

#endif
