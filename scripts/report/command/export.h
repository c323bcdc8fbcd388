/* profrun export. */
#ifndef REPORT_COMMAND_EXPORT_H
#define REPORT_COMMAND_EXPORT_H

struct options;

/* Exports the recordings at @paths: at most one, except for coverage.  Returns
 * the exit status. */
int export_recordings(struct options *options, const char *format, char **paths,
		      int count);
/* Writes gmon.out of the recording at @path, or of the newest one, into
 * @file. */
int export_gmon_to(struct options *options, const char *path, const char *file);

#endif
