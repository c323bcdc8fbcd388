/* Prints profrun diff. */
#ifndef REPORT_TEXT_DIFF_H
#define REPORT_TEXT_DIFF_H

#include <stdio.h>

struct options;

/* Compares two sets of recordings. */
void diff_print(FILE *out, const struct options *options, char **first,
		int first_count, char **second, int second_count);

#endif
