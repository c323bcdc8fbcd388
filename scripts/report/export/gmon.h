/* Writes gmon.out with its symbols, and runs gprof. */
#ifndef REPORT_EXPORT_GMON_H
#define REPORT_EXPORT_GMON_H

#include "export/format.h"

/* Makes the directory for the files of profrun gprof; it is removed when the
 * program ends. */
const char *gmon_make_directory(void);
/* Runs gprof and returns its exit status. */
int gmon_run_gprof(const char *file, char **options, int count);

#endif
