/*
 * calltree with a budget: calls are counted and not timed, samples of processor time
 * give the times, and the functions whose calls cost more than the budget are switched
 * off at their call sites.
 */
#ifndef BUDGET_H
#define BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * budget_start - keep the cost of calltree below @percent of the processor time
 *
 * Called after tree_need_calls.  False if that cannot be done here; the log has the
 * reason, and calltree records all calls.
 */
bool budget_start(uint32_t percent);

/* budget_begin - all profilers have been started; after tree_begin */
void budget_begin(void);

#endif
