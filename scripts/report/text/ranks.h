/* report --ranks. */
#ifndef REPORT_TEXT_RANKS_H
#define REPORT_TEXT_RANKS_H

struct page;

/* The model keeps threads apart. */
void ranks_print(const struct page *page);

#endif
