/* Prints what a budget left out, and its cost, in the head of a report. */
#ifndef REPORT_TEXT_BUDGET_H
#define REPORT_TEXT_BUDGET_H

#include <stdio.h>

struct model;

/* Prints nothing unless a process was recorded with a budget. */
void budget_print(FILE *out, const struct model *model);

#endif
