/* Files of monitor(3) that programs could not write. */
#ifndef REPORT_JOBS_UNWRITTEN_GMON_H
#define REPORT_JOBS_UNWRITTEN_GMON_H

#include <stdint.h>

struct recording;

/* Writes the files that programs could not, as they had counted for monitor(3),
 * into @directory.  How many. */
uint32_t unwritten_gmon_write(const struct recording *recording,
			      const char *directory);

#endif
