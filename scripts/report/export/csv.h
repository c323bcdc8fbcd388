/* Exports the table of functions as CSV. */
#ifndef REPORT_EXPORT_CSV_H
#define REPORT_EXPORT_CSV_H

#include <stdio.h>

#include "export/format.h"

struct function;
struct model;
struct options;

/* The columns name, mangled and object, each with the comma behind it. */
void csv_function(FILE *out, const struct function *function);
void csv_print(FILE *out, struct model *model, const struct options *options);

#endif
