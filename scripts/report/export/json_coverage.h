/* Prints coverage as JSON. */
#ifndef REPORT_EXPORT_JSON_COVERAGE_H
#define REPORT_EXPORT_JSON_COVERAGE_H

#include <stdio.h>

struct coverage;

/* A row for each file.  The sums leave out files of the system, as the table does.  The tests
 * must have been merged. */
void coverage_json(FILE *out, const struct coverage *coverage);

#endif
