/* What the user can do for better numbers. */
#ifndef REPORT_ADVICE_H
#define REPORT_ADVICE_H

#include "model.h"

#include <stdio.h>

/* Objects of recorded functions that lack something. */
enum lack {
	LACKS_SYMBOLS,	/* it is stripped, and functions are shown by address */
	LACKS_LINES,	/* no debug information, so that lines are unknown */
};

/* The paths of those that lack @lack, at most @room; returns how many there are. */
uint32_t advice_lacking(const struct model *model, enum lack lack,
			const char **paths, uint32_t room);

/* Lines for the head of a report; none where nothing is to be done. */
void advice_print(FILE *out, const struct model *model);

#endif
