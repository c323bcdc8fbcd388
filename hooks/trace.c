/*
 * The trace profiler: `-p trace`.  Every enter and leave with its time.
 *
 * The calls are those of the call tree (calltree.h), which finds out how each of them
 * ends; its hooks write the records, one way or the other.  Without calltree beside
 * it the tree is in private memory and counts nothing.
 */
#include "calltree.h"

#include <shim/banned.h>

int trace_start(const char *arguments);

/* @arguments: separated by commas.  0, or -1 if one is none. */
int trace_start(const char *arguments)
{
	while (*arguments) {
		size_t size = 0;

		while (arguments[size] && arguments[size] != ',')
			size++;
		if (!trace_read_option(arguments, size))
			return -1;
		arguments += size;
		arguments += *arguments == ',';
	}
	trace_prepare();
	tree_is_traced = true;
	return tree_start();
}
