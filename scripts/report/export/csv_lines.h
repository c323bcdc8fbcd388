/* Exports the lines of sampled functions as CSV. */
#ifndef REPORT_EXPORT_CSV_LINES_H
#define REPORT_EXPORT_CSV_LINES_H

#include <stdio.h>

struct model;

/* The model has places: it was built with options->by_line. */
void lines_csv(FILE *out, const struct model *model);

#endif
