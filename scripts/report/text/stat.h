/* One paragraph about a recording. */
#ifndef REPORT_TEXT_STAT_H
#define REPORT_TEXT_STAT_H

#include <stdio.h>

struct model;

/* @samples: of the same recording, for programs without calls; or NULL. */
void stat_print(FILE *out, const struct model *model,
		const struct model *samples);
void stat_json(FILE *out, const struct model *model,
	       const struct model *samples);

#endif
