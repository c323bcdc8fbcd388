/*
 * The log of shim, a part of the recording.  Lines that shim logs before the recording
 * exists wait for it.
 */
#ifndef SHIM_LOG_H
#define SHIM_LOG_H

#include <stddef.h>
#include <stdint.h>

struct shim_meta;
struct text;

/* Called first: stores the identity of the file of standard error. */
void log_start(void);
/* shim came into a running program, so it prints nothing: profrun tells what it has logged. */
void log_be_silent(void);
/* Adds one line; %s takes a string.  Async. */
void log_line(const char *format, ...);
/* Adds a line "format: reason", where @error is -errno or a reason of trust.h. */
void log_error(const char *format, const char *name, int error);
/* Adds a line about a setting that shim cannot follow.  Without profrun, which prints the
 * log, standard error gets the line, too (log_speak). */
void log_setting(const char *format, ...);
/* The end of the log, for log_about_setting. */
uint32_t log_end(void);
/* Copies the lines since log_end returned @since, with "; " between them. */
void log_copy(uint32_t since, struct text *text);
/* Treats all lines since log_end returned @since as lines of log_setting. */
void log_about_setting(uint32_t since);
/* Prints the lines about settings, once, after the start. */
void log_speak(void);
/* Directs the log to @meta and adds the waiting lines; NULL: new lines wait. */
void log_to(struct shim_meta *meta);
/* The lines that wait, each with its newline. */
const char *log_waiting(size_t *size);
/* Prints the waiting lines on standard error, because there is no recording.  Not in
 * processes that the program started under profrun; a silent log keeps the lines. */
void log_give_up(void);
/* Prints the waiting lines and ends the program, as ld.so does if a symbol is missing. */
_Noreturn void log_end_program(void);
/* The text of -errno or of a reason of trust.h. */
const char *log_reason(int error);

#endif
