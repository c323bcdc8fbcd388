/* Prints what --hide, --only, --focus and --merge-recursion leave out. */
#ifndef REPORT_TEXT_HIDDEN_H
#define REPORT_TEXT_HIDDEN_H

struct layout;

/* Prints lines for the head of a report; nothing if all functions are shown. */
void hidden_print(const struct layout *layout);

#endif
