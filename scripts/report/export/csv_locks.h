/* Exports waits for locks as CSV. */
#ifndef REPORT_EXPORT_CSV_LOCKS_H
#define REPORT_EXPORT_CSV_LOCKS_H

#include <stdio.h>

struct model;
struct options;

void locks_csv(FILE *out, const struct model *model,
	       const struct options *options);

#endif
