/* What a budget has left out, and what it cost: lines for the head of a report. */
#ifndef REPORT_TEXT_BUDGET_H
#define REPORT_TEXT_BUDGET_H

#include <stdio.h>

struct model;

/* Nothing, unless a process was recorded with a budget. */
void budget_print(FILE *out, const struct model *model);

#endif
