/* Prints advice for better numbers. */
#ifndef REPORT_TEXT_ADVICE_H
#define REPORT_TEXT_ADVICE_H

#include <stdio.h>

struct model;

/* Prints lines for the head of a report; none if there is no advice. */
void advice_print(FILE *out, const struct model *model);

#endif
