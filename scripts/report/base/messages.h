/* Messages on stderr, and the end of the program. */
#ifndef REPORT_BASE_MESSAGES_H
#define REPORT_BASE_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

/* Ends with status 1; what -o had begun to write is removed. */
_Noreturn void die(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
/* The same with status 2, for a wrong command line; it names the --help of
 * usage_verb()'s last. */
void usage_verb(const char *name);
_Noreturn void die_usage(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
/* die() calls @first before it ends the program. */
void die_after(void (*first)(void));
/* From here on die() ends the process and does nothing else: what is to be tidied up
 * belongs to another one. */
void die_at_once(void);
/* Says it on stderr and keeps it for the json output. */
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
size_t warning_count(void);
const char *warning_text(size_t i);

/* One line on stderr that renews itself, when stderr is a terminal and more
 * than a second has passed since the program began. */
void progress(const char *what, uint64_t done, uint64_t all);
void progress_end(void);

#endif
