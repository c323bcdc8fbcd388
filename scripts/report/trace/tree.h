/* Builds a tree of call paths from a trace. */
#ifndef REPORT_TRACE_TREE_H
#define REPORT_TRACE_TREE_H

struct trace;
struct trace_range;

/* Adds the calls of @trace within @range to the files of those processes of its
 * recording whose calls were not counted, as calltree would have recorded them.  Call it
 * before model_build(). */
void trace_add_calls(struct trace *trace, const struct trace_range *range);

#endif
