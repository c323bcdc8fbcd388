/* With a budget: the time of call sites that are off. */
#ifndef REPORT_MODEL_CALL_SITES_H
#define REPORT_MODEL_CALL_SITES_H

struct model;
struct process;

/* What the call sites of one call take in the process, in ns. */
double call_sites_cost(const struct process *process);
/* Subtracts it from the samples of each function, by path->sites_cost of all of its
 * paths.  After all samples and calls have been added. */
void call_sites_subtract(struct model *model);

#endif
