/*
 * Where reports go: stdout, or a temporary file that gets the name the user asked for when
 * everything is in it.
 */
#ifndef REPORT_BASE_OUTPUT_H
#define REPORT_BASE_OUTPUT_H

#include <stdio.h>

/*
 * Where reports go: stdout, or a temporary file that gets the name the user
 * asked for when everything is in it.
 */
FILE *output_open(const char *path);
void output_close(void);
/*
 * A new file in @directory, which the user has named @directory_name.  The other gives it
 * @name, or @name and a number if there is something of that name already, and returns
 * which: nothing is written over, and no link followed.
 */
FILE *output_create(int directory, const char *directory_name);
const char *output_close_as(const char *name);

#endif
