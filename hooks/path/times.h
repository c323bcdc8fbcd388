/* Reads the exact clock, and measures the cost of the hooks (cost.c). */
#ifndef PATH_TIMES_H
#define PATH_TIMES_H

#include "path/path.h"

/* Reads the exact clock, off the fast path. */
static inline uint64_t now(void)
{
	if (UNLIKELY(tree_hot.no_clock))
		return tree_tick ? *tree_tick : 0;
	return shim_clock_read();
}

/* Measures the cost of a call and stores it in @meta. */
void tree_describe_cost(struct shim_meta *meta);

/* The tick of threads that have no tree yet. */
extern const uint64_t cost_no_tick;

#endif
