/* Prints profrun diff. */
#ifndef REPORT_TEXT_DIFF_H
#define REPORT_TEXT_DIFF_H

#include <stdbool.h>
#include <stdio.h>

struct options;

/* Compares two sets of recordings; returns whether --fail-above was crossed, which
 * it tells on stderr. */
bool diff_print(FILE *out, const struct options *options, char **first,
		int first_count, char **second, int second_count);

#endif
