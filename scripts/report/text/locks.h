/* The table of locks. */
#ifndef REPORT_TEXT_LOCKS_H
#define REPORT_TEXT_LOCKS_H

struct layout;

/* The table of locks, and who waits for them; the same for programs. */
void locks_print(const struct layout *layout);

#endif
