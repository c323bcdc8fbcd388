/* Prints profrun replay. */
#ifndef REPORT_TEXT_REPLAY_H
#define REPORT_TEXT_REPLAY_H

#include <stdio.h>

struct options;
struct recording;

/* Prints the timeline as nested calls. */
void replay_print(FILE *out, struct recording *recording,
		  const struct options *options);

#endif
