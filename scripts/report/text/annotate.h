/* Prints functions with the samples beside each line or instruction. */
#ifndef REPORT_TEXT_ANNOTATE_H
#define REPORT_TEXT_ANNOTATE_H

#include <stdio.h>

struct annotation;
struct options;

void annotate_print(FILE *out, const struct annotation *annotation,
		    const struct options *options);

#endif
