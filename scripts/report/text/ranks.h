/* report --ranks. */
#ifndef REPORT_TEXT_RANKS_H
#define REPORT_TEXT_RANKS_H

struct layout;

/* The model keeps threads apart. */
void ranks_print(const struct layout *layout);

#endif
