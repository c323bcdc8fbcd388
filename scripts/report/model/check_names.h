/* Checks function names in options of profilers. */
#ifndef REPORT_MODEL_CHECK_NAMES_H
#define REPORT_MODEL_CHECK_NAMES_H

struct model;

/* Warns of functions that a profile names and that were never called. */
void check_names(const struct model *model);

#endif
