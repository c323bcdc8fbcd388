/* A trace as a tree of call paths. */
#ifndef REPORT_TRACE_TREE_H
#define REPORT_TRACE_TREE_H

#include <stdbool.h>

struct recording;

/* The calls of all traces, as calltree would have recorded them, become
 * files of the processes; false: there is no trace.  Before model_build(). */
bool trace_add_calls(struct recording *recording);

#endif
