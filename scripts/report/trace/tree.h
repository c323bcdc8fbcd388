/* Builds a tree of call paths from a trace. */
#ifndef REPORT_TRACE_TREE_H
#define REPORT_TRACE_TREE_H

#include <stdbool.h>

struct recording;

/* Adds the calls of all traces to the files of the processes, as calltree
 * would have recorded them; false: there is no trace.  Call it before
 * model_build(). */
bool trace_add_calls(struct recording *recording);

#endif
