/* Messages of profrun: to stderr, one line at a time. */
#ifndef RUN_SAY_H
#define RUN_SAY_H

/* profrun's own statuses; every other one is the program's. */
enum {
	STATUS_USAGE = 2,
	STATUS_FAILED = 125,
	STATUS_NOT_EXECUTABLE = 126,
	STATUS_NOT_FOUND = 127,
};

/*
 * say - write "profrun: " and the message as one line to stderr
 *
 * Control characters, characters that reorder text, and invalid UTF-8 are written as
 * \xNN: names of programs and directories may hold anything.
 */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* say_plainly - the same without "profrun: ", to stdout */
void say_plainly(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* say_end - returns @status, or not 0, with a message, if stdout could not be written */
int say_end(int status);

#endif
