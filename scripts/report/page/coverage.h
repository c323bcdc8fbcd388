/* The page of profrun html for a recording that has coverage and no calls. */
#ifndef REPORT_PAGE_COVERAGE_H
#define REPORT_PAGE_COVERAGE_H

#include <stdio.h>

struct coverage;
struct options;

/* @title is the name of the recording.  @coverage is finished and of one test. */
void coverage_page_print(FILE *out, const char *title,
			 const struct coverage *coverage,
			 const struct options *options);

#endif
