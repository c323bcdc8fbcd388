/*
 * calltree with a budget: it counts calls without timing them, takes the times from
 * samples of processor time, and switches off, at their call sites, the functions whose
 * calls cost more than the budget.
 */
#ifndef BUDGET_H
#define BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * budget_start - keep the cost of calltree below @percent of the processor time
 *
 * Called after tree_need_calls.  Returns false if samples are not available; then the
 * log has the reason, and calltree records all calls.
 */
bool budget_start(uint32_t percent);

/* budget_begin - start the budget after all profilers have been started and after
 * tree_begin */
void budget_begin(void);

#endif
