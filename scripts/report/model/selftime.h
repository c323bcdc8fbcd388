/* What of a path's self time is the program's. */
#ifndef REPORT_MODEL_SELFTIME_H
#define REPORT_MODEL_SELFTIME_H

struct model;

/* Self and self_variance of all paths, once self_raw is known. */
void selftime_measure(struct model *model);

#endif
