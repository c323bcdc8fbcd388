/* A recording that is made of others. */
#ifndef REPORT_JOBS_MERGE_RECORDINGS_H
#define REPORT_JOBS_MERGE_RECORDINGS_H

/* A new recording at @output that is made of others. */
void merge_recordings(const char *output, char **paths, int count);

#endif
