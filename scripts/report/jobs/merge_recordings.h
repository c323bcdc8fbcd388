/* Merges recordings into one. */
#ifndef REPORT_JOBS_MERGE_RECORDINGS_H
#define REPORT_JOBS_MERGE_RECORDINGS_H

/* Makes a new recording at @output that consists of other recordings. */
void merge_recordings(const char *output, char **paths, int count);

#endif
