/* Reads N.coverage files. */
#ifndef REPORT_MODEL_COVERAGE_READ_H
#define REPORT_MODEL_COVERAGE_READ_H

struct coverage;
struct recording;

/* Adds the coverage of a recording. */
void coverage_add(struct coverage *coverage, const struct recording *recording);

#endif
