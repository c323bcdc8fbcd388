/* Writes call paths in JSON and CSV. */
#ifndef REPORT_EXPORT_PATHS_H
#define REPORT_EXPORT_PATHS_H

#include <stdint.h>
#include <stdio.h>

struct json;
struct model;
struct options;

void path_json(struct json *json, const struct model *model,
	       const struct options *options, uint32_t path);
void path_csv(FILE *out, const struct model *model,
	      const struct options *options, uint32_t path);

#endif
