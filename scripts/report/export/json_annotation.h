/* Functions with the samples of each line, as JSON. */
#ifndef REPORT_EXPORT_JSON_ANNOTATION_H
#define REPORT_EXPORT_JSON_ANNOTATION_H

#include <stdio.h>

struct annotation;
struct options;

void json_annotation_print(FILE *out, const struct annotation *annotation,
			   const struct options *options);

#endif
