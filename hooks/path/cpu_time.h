/* Processor time instead of time: calltree:clock=cpu. */
#ifndef PATH_CPU_TIME_H
#define PATH_CPU_TIME_H

#include "path/path.h"

/* The calling thread begins with @tree. */
void cpu_begin_thread(struct tree *tree);

/*
 * Takes the time that this thread has waited since the tick @last out of all its open
 * calls, whose starts become later, @tick at the latest.  The result is that time,
 * @tick - @last at most.  Time that nobody takes out is taken for waiting after @tick:
 * no tick may be left out.
 */
COLD uint64_t cpu_leave_out_waiting(uint64_t last, uint64_t tick);

/* Counts that time for @node, the innermost of these calls, or one that ends. */
void cpu_count_waiting(struct shim_node *node, uint64_t waited);

#endif
