/* Writes gmon.out of a program that a signal ended before it could write the file. */
#ifndef RUN_HISTOGRAMS_H
#define RUN_HISTOGRAMS_H

/*
 * histograms_finish - write the histograms in @recording, if any, with @report
 *
 * They go to the directory that the user gave in PROFDIR or with -dirname in PROFFLAGS,
 * or to the working directory.  A change of directory by the program is ignored.
 */
void histograms_finish(const char *report, const char *recording);

#endif
