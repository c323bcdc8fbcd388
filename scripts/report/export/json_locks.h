/* Waits for locks in the report for programs. */
#ifndef REPORT_EXPORT_JSON_LOCKS_H
#define REPORT_EXPORT_JSON_LOCKS_H

#include <stdio.h>

struct model;
struct options;

void locks_json(FILE *out, const struct model *model,
		const struct options *options);

#endif
