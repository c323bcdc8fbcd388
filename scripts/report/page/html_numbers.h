/* Writes the numbers of the page of profrun html. */
#ifndef REPORT_PAGE_HTML_NUMBERS_H
#define REPORT_PAGE_HTML_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/names.h"
#include "model/model.h"
#include "model/options.h"
#include "page/columns.h"
#include "page/timeline.h"

struct annotation;

struct view {
	uint32_t thread; /* NONE: all */
	uint32_t paths;
	size_t size; /* size of the columns in bytes */
};

/* A model in the page. */
struct source {
	struct model *model;
	struct columns columns;
	size_t functions_size; /* size in bytes; the views follow */
	/* by function: its number in the page, or NONE */
	uint32_t *places;
	uint32_t function_count; /* functions that have a number */
	struct view *views;
	uint32_t view_count, view_room;
	bool is_against; /* the recording to compare with */
	double *weights; /* by path: see choose_paths() */
	double least;	 /* paths of this weight or less are left out */
	uint64_t left_out;
};

struct html {
	const struct options *options;
	struct names strings;
	struct source *sources;
	size_t source_count;
	struct timeline *timeline; /* or NULL */
	struct columns timeline_functions;
	const struct annotation *annotation; /* or NULL */
};

/* Writes the numbers of all views. */
void html_fill_source(struct html *html, struct source *source);
/* Writes the functions of the timeline. */
void html_name_timeline(struct html *html);

#endif
