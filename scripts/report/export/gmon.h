/* gmon.out and its symbols, and gprof. */
#ifndef REPORT_EXPORT_GMON_H
#define REPORT_EXPORT_GMON_H

#include "export/format.h"

/* Where the files for profrun gprof go; it is removed when the program ends. */
const char *gmon_make_directory(void);
/* gprof's exit status. */
int gmon_run_gprof(const char *file, char **options, int count);

extern const struct export_format export_gmon;

#endif
