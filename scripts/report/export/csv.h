/* Exports the table of functions as CSV. */
#ifndef REPORT_EXPORT_CSV_H
#define REPORT_EXPORT_CSV_H

#include <stdio.h>

#include "export/format.h"

struct model;
struct options;

void csv_print(FILE *out, struct model *model, const struct options *options);

#endif
