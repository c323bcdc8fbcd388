/* profrun replay --json. */
#ifndef REPORT_EXPORT_JSON_REPLAY_H
#define REPORT_EXPORT_JSON_REPLAY_H

#include <stdio.h>

struct options;
struct recording;

/* Writes the events of the trace that the options choose, at most --limit; dies if there
 * is no trace. */
void json_replay_print(FILE *out, struct recording *recording,
		       const struct options *options);

#endif
