/* Prints the report for people. */
#ifndef REPORT_TEXT_REPORT_H
#define REPORT_TEXT_REPORT_H

#include <stdio.h>

struct model;
struct options;

/* @samples: samples of the same run for a comparison, or NULL. */
void text_print(FILE *out, struct model *model, struct model *samples,
		const struct options *options);
/* Prints the lines before the table. */
void head_print(FILE *out, struct model *model, const struct options *options);

#endif
