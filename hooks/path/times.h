/* Reads the exact clock, and measures the cost of the hooks (cost.c). */
#ifndef PATH_TIMES_H
#define PATH_TIMES_H

#include "path/path.h"

#include <shim/builtin.h>

/* Reads the exact clock, off the fast path. */
static inline uint64_t now(void)
{
	if (UNLIKELY(tree_hot.no_clock))
		return tree_tick ? shim_clock_of_tick(tree_tick, *tree_tick) :
				   0;
	return shim_clock_read();
}

/* The time of a value of the tick, off the fast path. */
static inline uint64_t time_of_tick(uint64_t tick)
{
	return tick == tree_hot.last ? tree_hot.clock :
				       shim_clock_of_tick(tree_hot.tick, tick);
}

/* The thread has seen @tick.  A signal handler that comes between sees another tick as
 * the last one, and repeats this. */
static inline void set_tick(uint64_t tick, uint64_t time)
{
	tree_hot.clock = time;
	__atomic_store_n(&tree_hot.last, tick, __ATOMIC_RELEASE);
}

/* Measures the cost of a call and stores it in @meta. */
void tree_describe_cost(struct shim_meta *meta);

/* The tick of threads that have no tree yet. */
extern const uint64_t cost_no_tick;

#endif
