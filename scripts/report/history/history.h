/* profrun history: times over the versions of a program. */
#ifndef REPORT_HISTORY_HISTORY_H
#define REPORT_HISTORY_HISTORY_H

#include <stdbool.h>
#include <stdio.h>

struct options;

/* Adds recordings as runs of options->version, or of versions of their names. */
void history_add(const struct options *options, char **paths, int count);
/* Prints the times of @function, or of the whole program if it is NULL, by version;
 * returns whether --fail-above was crossed, which it tells on stderr. */
bool history_print(FILE *out, const struct options *options,
		   const char *function);

#endif
