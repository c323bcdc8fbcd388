/* Calls against samples of the same run. */
#ifndef REPORT_TEXT_CROSSCHECK_H
#define REPORT_TEXT_CROSSCHECK_H

struct model;
struct page;

/* crosscheck.c */
void crosscheck_print(const struct page *page, struct model *samples);

#endif
