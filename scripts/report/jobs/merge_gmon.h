/* Adds gmon.out files. */
#ifndef REPORT_JOBS_MERGE_GMON_H
#define REPORT_JOBS_MERGE_GMON_H

/* Writes the sum of gmon.out files of one object to @path. */
void merge_gmon(const char *path, char **files, int count);

#endif
