/* Calls against samples of the same run. */
#ifndef REPORT_TEXT_CROSSCHECK_H
#define REPORT_TEXT_CROSSCHECK_H

struct model;
struct layout;

/* crosscheck.c */
void crosscheck_print(const struct layout *layout, struct model *samples);

#endif
