#ifndef REPORT_TEXT_JOB_H
#define REPORT_TEXT_JOB_H

#include <stdio.h>

#include "read/recording.h"

/* Prints what is unusual about the ranks of a job: missing ones, the ends of
 * those that failed, those that were started again, different programs. */
void job_print(FILE *out, const struct recording *recording);

#endif
