/* What --filter let through. */
#ifndef REPORT_TEXT_FILTER_H
#define REPORT_TEXT_FILTER_H

struct layout;

/* What --filter let through, and its items that are the name of nothing. */
void filter_print(const struct layout *layout);

#endif
