/*
 * Messages.  Each is one write, so that lines of several processes do not mix, and each
 * passes the same filter for characters that are not text (os/characters.h).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "os/characters.h"
#include "say.h"

#define TEXT_SIZE 8192

/* The error of the first write to stdout that failed; 0: none. */
static int output_error;

/* Returns 0 or an errno. */
static int write_all(int fd, const char *text, size_t size)
{
	ssize_t r;

	while (size > 0) {
		r = write(fd, text, size);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? errno : EIO;
		text += r;
		size -= r;
	}
	return 0;
}

/* The longest output of a step: four bytes as \xNN, and the NUL of sprintf. */
#define STEP_MAX (4 * 4 + 1)

static size_t escape(const char *text, char *line, size_t size)
{
	size_t n = 0, length;
	bool is_plain;

	while (*text != '\0' && n + STEP_MAX < size) {
		for (length = character_step(text, &is_plain); length > 0;
		     length--, text++)
			if (is_plain)
				line[n++] = *text;
			else
				n += sprintf(line + n, "\\x%02x",
					     (unsigned char)*text);
	}
	return n;
}

/* Returns 0 or an errno. */
static int write_line(int fd, const char *prefix, const char *format,
		      va_list arguments)
{
	char text[TEXT_SIZE], line[TEXT_SIZE + 64];
	size_t n = strlen(prefix);

	vsnprintf(text, sizeof(text), format, arguments);
	memcpy(line, prefix, n);
	n += escape(text, line + n, sizeof(line) - n);
	line[n++] = '\n';
	return write_all(fd, line, n);
}

void say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_line(STDERR_FILENO, "profrun: ", format, arguments);
	va_end(arguments);
}

void say_plainly(const char *format, ...)
{
	va_list arguments;
	int error;

	va_start(arguments, format);
	error = write_line(STDOUT_FILENO, "", format, arguments);
	va_end(arguments);
	if (output_error == 0)
		output_error = error;
}

int say_end(int status)
{
	errno = 0;
	if (fflush(stdout) != 0 || ferror(stdout))
		output_error = errno != 0 ? errno : EIO;
	if (output_error == 0)
		return status;
	say("standard output: cannot write: %s", strerror(output_error));
	return status != 0 ? status : 1;
}
