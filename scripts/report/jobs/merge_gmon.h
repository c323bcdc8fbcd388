/* One gmon.out of many. */
#ifndef REPORT_JOBS_MERGE_GMON_H
#define REPORT_JOBS_MERGE_GMON_H

/* The sum of gmon.out files of one object, at @path. */
void merge_gmon(const char *path, char **files, int count);

#endif
