/* Prints the recording's --filter. */
#ifndef REPORT_TEXT_FILTER_H
#define REPORT_TEXT_FILTER_H

struct layout;

/* Prints the recording's --filter, and its items that match no name. */
void filter_print(const struct layout *layout);

#endif
