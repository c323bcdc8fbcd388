/*
 * What we have to say goes into the recording, never to the program's output.
 * Lines logged before there is a recording wait for it.
 */
#ifndef SHIM_LOG_H
#define SHIM_LOG_H

#include <stddef.h>
#include <stdint.h>

struct shim_meta;

/* First of all: standard error is what it is now. */
void log_start(void);
/* Adds one line; %s takes a string.  Async. */
void log_line(const char *format, ...);
/* ... with an error: "format: reason". */
void log_error(const char *format, const char *name, int error);
/* The same of a setting that cannot be followed: without profrun, which prints the
 * log, standard error gets it, too (log_speak). */
void log_setting(const char *format, ...);
/* Where the log ends now; and: what was logged since is about such a setting. */
uint32_t log_end(void);
void log_about_setting(uint32_t since);
/* At the end of the start: prints those lines. */
void log_speak(void);
/* From now on lines go there; those that waited go there now. */
void log_to(struct shim_meta *meta);
/* The lines that wait, each with its newline. */
const char *log_waiting(size_t *size);
/* Prints them on standard error: there is no recording. */
void log_give_up(void);
/* The usual words for -errno. */
const char *log_reason(int error);

#endif
