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

static void write_all(int fd, const char *text, size_t size)
{
	ssize_t r;

	while (size > 0) {
		r = write(fd, text, size);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return;
		text += r;
		size -= r;
	}
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

static void write_line(int fd, const char *prefix, const char *format,
		       va_list arguments)
{
	char text[TEXT_SIZE], line[TEXT_SIZE + 64];
	size_t n = strlen(prefix);

	vsnprintf(text, sizeof(text), format, arguments);
	memcpy(line, prefix, n);
	n += escape(text, line + n, sizeof(line) - n);
	line[n++] = '\n';
	write_all(fd, line, n);
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

	va_start(arguments, format);
	write_line(STDOUT_FILENO, "", format, arguments);
	va_end(arguments);
}
