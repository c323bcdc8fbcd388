/* Prints the table of locks. */
#ifndef REPORT_TEXT_LOCKS_H
#define REPORT_TEXT_LOCKS_H

struct layout;

/* Prints the table of locks with the waiting paths, as text or as data. */
void locks_print(const struct layout *layout);

#endif
