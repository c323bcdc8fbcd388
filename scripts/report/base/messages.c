/*
 * Messages.  The report runs in a process of its own, so an error that it
 * cannot survive ends it here, in die(). warn() reports any other problem once
 * and keeps the message for the JSON output.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/seconds.h"
#include "base/text.h"

/* In a damaged recording, every file may be damaged. */
#define WARNINGS_MAX 100

static const char **warnings;
static size_t warnings_count, warnings_room;
static bool progress_shown, progress_is_off, dies_at_once;
static void (*tidy_up)(void);
static const char *verb = "";

static void print_message(const char *format, va_list arguments)
{
	char *text = NULL;

	progress_end();
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	fputs("profrun: ", stderr);
	put_text(stderr, text ? text : format);
	fputc('\n', stderr);
	free(text);
}

void die_after(void (*first)(void))
{
	tidy_up = first;
}

void die_at_once(void)
{
	dies_at_once = true;
}

void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_message(format, arguments);
	va_end(arguments);
	if (dies_at_once)
		_exit(1);
	if (tidy_up)
		tidy_up();
	exit(1);
}

void die_usage(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_message(format, arguments);
	va_end(arguments);
	fprintf(stderr, "Try 'profrun%s%s --help'.\n", *verb ? " " : "", verb);
	exit(2);
}

void usage_verb(const char *name)
{
	verb = name;
}

/* Some outputs read a recording more than once. */
static bool was_said(const char *text)
{
	size_t i;

	for (i = 0; i < warnings_count; i++)
		if (!strcmp(warnings[i], text))
			return true;
	return false;
}

void warn(const char *format, ...)
{
	va_list arguments;
	char *text;

	if (warnings_count == WARNINGS_MAX)
		return;
	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	if (was_said(text ? text : format)) {
		free(text);
		return;
	}
	GROW(warnings, warnings_count, warnings_room);
	if (warnings_count == WARNINGS_MAX - 1)
		warnings[warnings_count] = "more is wrong than is said here";
	else
		warnings[warnings_count] = keep_text(text ? text : format,
						     SIZE_MAX);
	free(text);
	progress_end();
	fputs("profrun: ", stderr);
	put_text(stderr, warnings[warnings_count++]);
	fputc('\n', stderr);
}

const char *more_like_it(uint64_t count)
{
	return count ? keep_format(" (and %" PRIu64 " more like it)", count) :
		       "";
}

size_t warning_count(void)
{
	return warnings_count;
}

const char *warning_text(size_t i)
{
	return warnings[i];
}

void progress(const char *what, uint64_t done, uint64_t all)
{
	static double first, last;
	static int is_terminal = -1;
	double now;

	if (is_terminal < 0) {
		is_terminal = isatty(STDERR_FILENO);
		first = seconds_of(CLOCK_MONOTONIC);
	}
	if (!is_terminal || progress_is_off || all == 0)
		return;
	now = seconds_of(CLOCK_MONOTONIC);
	if (now - first < 1 || now - last < 0.1)
		return;
	last = now;
	progress_shown = true;
	fprintf(stderr, "\r%s %3.0f%%\033[K", what,
		100.0 * (double)done / (double)all);
}

void progress_off(void)
{
	progress_end();
	progress_is_off = true;
}

void progress_end(void)
{
	if (progress_shown)
		fputs("\r\033[K", stderr);
	progress_shown = false;
}
