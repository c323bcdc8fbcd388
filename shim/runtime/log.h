/*
 * The log of shim, a part of the recording.  Lines that are logged before there is a
 * recording wait for it.
 */
#ifndef SHIM_LOG_H
#define SHIM_LOG_H

#include <stddef.h>
#include <stdint.h>

struct shim_meta;

/* Called first: remembers which file standard error is. */
void log_start(void);
/* Adds one line; %s takes a string.  Async. */
void log_line(const char *format, ...);
/* The same with an error: "format: reason". */
void log_error(const char *format, const char *name, int error);
/* The same for a setting that shim cannot follow.  Without profrun, which prints the
 * log, standard error gets the line too (log_speak). */
void log_setting(const char *format, ...);
/* The end of the log; log_about_setting: the lines logged since are about such a
 * setting. */
uint32_t log_end(void);
void log_about_setting(uint32_t since);
/* Prints the lines about settings, once, when the start is done. */
void log_speak(void);
/* Directs the log to @meta, with the lines that waited; NULL: lines wait again. */
void log_to(struct shim_meta *meta);
/* The lines that wait, each with its newline. */
const char *log_waiting(size_t *size);
/* Prints the waiting lines on standard error: there is no recording. */
void log_give_up(void);
/* The text of -errno or of a reason of trust.h. */
const char *log_reason(int error);

#endif
