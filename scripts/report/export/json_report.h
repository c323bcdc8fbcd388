/* Writes the JSON report. */
#ifndef REPORT_EXPORT_JSON_REPORT_H
#define REPORT_EXPORT_JSON_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "export/format.h"

struct json;
struct model;
struct options;

void json_report_print(FILE *out, struct model *model,
		       const struct options *options, bool with_paths);

/* Writes the key "warnings" with the warnings so far. */
void json_put_warnings(struct json *json);

#endif
