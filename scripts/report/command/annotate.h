/* profrun annotate. */
#ifndef REPORT_COMMAND_ANNOTATE_H
#define REPORT_COMMAND_ANNOTATE_H

struct options;

/* Prints the lines of the functions that the first word means (model/annotation.h).  The
 * second one is the recording; a recording alone has its hottest function.  Returns the
 * exit status. */
int annotate(const struct options *options, char **words, int count);

#endif
