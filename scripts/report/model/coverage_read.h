/* N.coverage files. */
#ifndef REPORT_MODEL_COVERAGE_READ_H
#define REPORT_MODEL_COVERAGE_READ_H

struct coverage;
struct recording;

/* Adds what a recording has. */
void coverage_add(struct coverage *coverage, const struct recording *recording);

#endif
