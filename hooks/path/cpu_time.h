/* Processor time instead of time: calltree:clock=cpu. */
#ifndef PATH_CPU_TIME_H
#define PATH_CPU_TIME_H

#include "path/path.h"

/* The calling thread begins with @tree. */
void cpu_begin_thread(struct tree *tree);

/*
 * Subtracts the time that this thread has waited since the tick @last from all its open
 * calls: their starts become later, but not later than @tick.  Returns that time, which
 * is at most @tick - @last.  The caller must not skip a tick, because time that is not
 * subtracted then counts as waiting after @tick.
 */
COLD uint64_t cpu_leave_out_waiting(uint64_t last, uint64_t tick);

/*
 * The thread leaves a stack and comes back to it: the calls that are open on it, from
 * @innermost to below @base, get no time meanwhile.  After the last tick.  Signals must be
 * blocked.
 */
void cpu_leave_stack(struct shim_node *innermost, const struct shim_node *base);
void cpu_come_back(struct shim_node *innermost, const struct shim_node *base);

/* Counts that time for @node, the innermost of these calls, or one that ends. */
void cpu_count_waiting(struct shim_node *node, uint64_t waited);

#endif
