/* Prints report --ranks. */
#ifndef REPORT_TEXT_RANKS_H
#define REPORT_TEXT_RANKS_H

struct layout;

/* The model must have the paths of threads separate. */
void ranks_print(const struct layout *layout);

#endif
