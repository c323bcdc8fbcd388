/* Prints the table of exceptions. */
#ifndef REPORT_TEXT_EXCEPTIONS_H
#define REPORT_TEXT_EXCEPTIONS_H

struct layout;

/* Prints throws and catches by type, as text or as data. */
void exceptions_print(const struct layout *layout);

#endif
