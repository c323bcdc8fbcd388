/* gmon.out of a program that a signal has ended before it could write it. */
#ifndef RUN_HISTOGRAMS_H
#define RUN_HISTOGRAMS_H

/*
 * histograms_finish - write them, as @report does, if there are any in @recording
 *
 * They go where the user says that such files go: PROFDIR, or -dirname in PROFFLAGS, or
 * the working directory.  The program may have moved, and what it says of it is not
 * asked.
 */
void histograms_finish(const char *report, const char *recording);

#endif
