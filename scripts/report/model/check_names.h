/* Names of functions that a profile was given. */
#ifndef REPORT_MODEL_CHECK_NAMES_H
#define REPORT_MODEL_CHECK_NAMES_H

struct model;

/* Warns of functions that a profile names and that nobody called. */
void check_names(const struct model *model);

#endif
