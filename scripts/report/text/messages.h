/* Prints the messages of a parallel job. */
#ifndef REPORT_TEXT_MESSAGES_H
#define REPORT_TEXT_MESSAGES_H

#include <stdio.h>

#include "model/late_ranks.h"
#include "model/options.h"

/* The sums of the job, and who was late. */
void messages_print(FILE *out, struct late_ranks *ranks,
		    const struct options *options);
/* What each rank has sent and received, and how long it waited. */
void messages_print_ranks(FILE *out, struct late_ranks *ranks,
			  const struct options *options);

#endif
