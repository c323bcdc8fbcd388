/* Exceptions in the report for programs. */
#ifndef REPORT_EXPORT_JSON_EXCEPTIONS_H
#define REPORT_EXPORT_JSON_EXCEPTIONS_H

#include <stdio.h>

struct model;
struct options;

void exceptions_json(FILE *out, const struct model *model,
		     const struct options *options);

#endif
