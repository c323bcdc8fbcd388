/* Separates the program's part of a path's self time from our own cost. */
#ifndef REPORT_MODEL_SELFTIME_H
#define REPORT_MODEL_SELFTIME_H

struct model;

/* Sets self and self_variance of all paths; self_raw must be known. */
void selftime_measure(struct model *model);

#endif
