/*
 * The output of a report: stdout, or a temporary file that gets the requested
 * name when it is complete.
 */
#ifndef REPORT_BASE_OUTPUT_H
#define REPORT_BASE_OUTPUT_H

#include <stdio.h>

/*
 * The output of a report: stdout, or a temporary file that gets the requested
 * name when it is complete.
 */
FILE *output_open(const char *path);
void output_close(void);
/*
 * The first function opens a new file in @directory, which the user named
 * @directory_name.  The second one gives the file @name, or @name and a number
 * if @name exists, and returns that name.  No file is overwritten, and no link
 * is followed.
 */
FILE *output_create(int directory, const char *directory_name);
const char *output_close_as(const char *name);

#endif
