/* Writes the page of profrun html. */
#ifndef REPORT_PAGE_HTML_H
#define REPORT_PAGE_HTML_H

#include <stddef.h>
#include <stdio.h>

#include "model/model.h"
#include "page/timeline.h"

struct annotation;
struct options;

/* The contents of the page. */
struct html_contents {
	/* models of one recording, the one to show at first comes first */
	struct model *models[4];
	size_t model_count;
	struct model *against;	   /* a recording to compare with, or NULL */
	struct timeline *timeline; /* or NULL */
	/* lines of one of @models, or NULL */
	const struct annotation *annotation;
};

void html_print(FILE *out, const struct html_contents *contents,
		const struct options *options);

#endif
