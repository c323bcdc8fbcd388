/* Prints the table of coverage. */
#ifndef REPORT_TEXT_COVERAGE_H
#define REPORT_TEXT_COVERAGE_H

#include <stdio.h>

struct coverage;
struct options;

void coverage_print(FILE *out, const struct coverage *coverage,
		    const struct options *options);

#endif
