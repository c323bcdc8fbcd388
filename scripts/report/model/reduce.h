/* The reduction of a job, from its files and by processes that share the rest. */
#ifndef REPORT_MODEL_REDUCE_H
#define REPORT_MODEL_REDUCE_H

#include <stdbool.h>

#include "model/options.h"
#include "model/reduction.h"
#include "read/recording.h"

/* Whether a report with these options can use a reduction. */
bool reduce_is_possible(const struct options *options);
/* The reduction of all parts of @recording; NULL: the parts have to be read as
 * a whole, because they are few or have more than calls. */
const struct reduction *reduce_for_report(const struct recording *recording);
/*
 * reduce_write - add up the ranks, and write the file into the recording
 *
 * @host: only ranks of this host, as its reduced.HOST; NULL: all ranks, as
 * reduced.  Returns false, with nothing written, if a rank has more than calls; dies of
 * other errors.
 */
bool reduce_write(const struct recording *recording, const char *host);

#endif
