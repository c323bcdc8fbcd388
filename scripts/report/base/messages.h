/* Messages on stderr, and the functions that end the program. */
#ifndef REPORT_BASE_MESSAGES_H
#define REPORT_BASE_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

/* Ends with status 1.  An unfinished output of -o is removed. */
_Noreturn void die(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
/* Like die(), with status 2, for a wrong command line.  The message refers to
 * the --help of the verb that the last usage_verb() named. */
void usage_verb(const char *name);
_Noreturn void die_usage(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
/* die() calls @first before it ends the program. */
void die_after(void (*first)(void));
/* After this call, die() ends the process without any cleanup: the cleanup is
 * left to another process. */
void die_at_once(void);
/* Prints the warning on stderr and keeps it for the JSON output. */
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* For a warning about the first of several: " (and 3 more like it)", or "". */
const char *more_like_it(uint64_t count);
size_t warning_count(void);
const char *warning_text(size_t i);

/* Progress: one line on stderr that is overwritten.  It appears only on a
 * terminal, more than a second after the program began. */
void progress(const char *what, uint64_t done, uint64_t all);
void progress_end(void);
/* Shows no more progress: the output goes to the terminal, too. */
void progress_off(void);

#endif
