/* The page of profrun html. */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include "report.h"

/* @models: of one recording; first what is shown first. */
void html_print(FILE *out, struct model *const *models, size_t count,
		const struct options *options);

#endif
