/* Compares calls with samples of the same run. */
#ifndef REPORT_TEXT_CROSSCHECK_H
#define REPORT_TEXT_CROSSCHECK_H

struct model;
struct layout;

/* Prints the comparison. */
void crosscheck_print(const struct layout *layout, struct model *samples);

#endif
