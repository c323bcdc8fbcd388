/* The page of profrun html. */
#ifndef REPORT_PAGE_HTML_H
#define REPORT_PAGE_HTML_H

#include <stddef.h>
#include <stdio.h>

#include "model/model.h"
#include "page/timeline.h"

struct options;

/* What is in the page. */
struct html_contents {
	struct model *models[4]; /* of one recording, the first shown first */
	size_t model_count;
	struct model *against;	   /* of another one to compare with, or NULL */
	struct timeline *timeline; /* or NULL */
};

void html_print(FILE *out, const struct html_contents *contents,
		const struct options *options);

#endif
