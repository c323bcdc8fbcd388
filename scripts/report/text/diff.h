/* profrun diff. */
#ifndef REPORT_TEXT_DIFF_H
#define REPORT_TEXT_DIFF_H

#include <stdio.h>

struct options;

/* Compares the recordings of two sets. */
void diff_print(FILE *out, const struct options *options, char **first,
		int first_count, char **second, int second_count);

#endif
