/* Advice for better numbers. */
#ifndef REPORT_TEXT_ADVICE_H
#define REPORT_TEXT_ADVICE_H

#include <stdio.h>

struct model;

/* Lines for the head of a report; none where nothing is to be done. */
void advice_print(FILE *out, const struct model *model);

#endif
