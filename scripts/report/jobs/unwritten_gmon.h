/* Writes files of monitor(3) for programs that could not write them. */
#ifndef REPORT_JOBS_UNWRITTEN_GMON_H
#define REPORT_JOBS_UNWRITTEN_GMON_H

#include <stdint.h>

struct recording;

/* Writes the files of killed programs, with the counts that they had for
 * monitor(3), into @directory.  Returns the number of files. */
uint32_t unwritten_gmon_write(const struct recording *recording,
			      const char *directory);

#endif
