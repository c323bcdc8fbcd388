/* The page of profrun html. */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include "report.h"

/* @models: of one recording; first what is shown first.  @against: of another one
 * to compare it with, or NULL. */
void html_print(FILE *out, struct model *const *models, size_t count,
		struct model *against, const struct options *options);

#endif
