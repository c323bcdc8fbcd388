/* Prints profrun info. */
#ifndef REPORT_TEXT_INFO_H
#define REPORT_TEXT_INFO_H

#include <stdio.h>

struct model;

void info_print(FILE *out, struct model *model);

/* Only how much was recorded, and what that cost. */
void info_print_sums(FILE *out, const struct model *model);

#endif
