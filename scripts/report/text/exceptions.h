/* The table of exceptions. */
#ifndef REPORT_TEXT_EXCEPTIONS_H
#define REPORT_TEXT_EXCEPTIONS_H

struct layout;

/* What is thrown and caught where; the same for programs. */
void exceptions_print(const struct layout *layout);

#endif
