/* Exports exceptions as CSV. */
#ifndef REPORT_EXPORT_CSV_EXCEPTIONS_H
#define REPORT_EXPORT_CSV_EXCEPTIONS_H

#include <stdio.h>

struct model;
struct options;

void exceptions_csv(FILE *out, const struct model *model,
		    const struct options *options);

#endif
