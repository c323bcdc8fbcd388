/* The report for people. */
#ifndef REPORT_TEXT_REPORT_H
#define REPORT_TEXT_REPORT_H

#include <stdio.h>

struct model;
struct options;

/* @samples: of the same run, to compare with; or NULL. */
void text_print(FILE *out, struct model *model, struct model *samples,
		const struct options *options);
/* The lines before its table. */
void head_print(FILE *out, struct model *model, const struct options *options);

#endif
