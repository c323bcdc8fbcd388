/*
 * Text from a recording is printed only through here.  A symbol, a thread or
 * a file may be named anything: ESC sequences, quotes, half a UTF-8 sequence.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "common/characters.h"

/*
 * One step through @text: how many bytes it takes, and how many columns the
 * terminal shows for them. *@plain says whether they may be printed as is.
 */
static size_t step(const char *text, size_t *columns, bool *plain)
{
	size_t length = character_step(text, plain);

	*columns = *plain ? 1 : length * 4;
	return length;
}

static void put_step(FILE *out, const char *text, size_t length, bool plain)
{
	size_t i;

	for (i = 0; i < length; i++)
		if (plain)
			putc(text[i], out);
		else
			fprintf(out, "\\x%02x", (unsigned char)text[i]);
}

size_t text_plain_bytes(const char *text)
{
	size_t count = 0;

	while (text[count] >= 0x20 && text[count] < 0x7f &&
	       text[count] != '"' && text[count] != '\\')
		count++;
	return count;
}

void put_text(FILE *out, const char *text)
{
	put_text_cut(out, text, SIZE_MAX);
}

void make_harmless(char *text)
{
	size_t columns, length;
	bool plain;

	for (; *text; text += length) {
		length = step(text, &columns, &plain);
		if (!plain)
			memset(text, '?', length);
	}
}

size_t text_columns(const char *text)
{
	size_t all = 0, columns;
	bool plain;

	while (*text) {
		text += step(text, &columns, &plain);
		all += columns;
	}
	return all;
}

void put_text_cut(FILE *out, const char *text, size_t columns)
{
	bool cut = columns != SIZE_MAX && text_columns(text) > columns;
	size_t used = 0, width, length;
	bool plain;

	if (!cut) {
		length = text_plain_bytes(text);
		fwrite(text, 1, length, out);
		text += length;
	}
	for (; *text; text += length) {
		length = step(text, &width, &plain);
		used += width;
		if (cut && used > columns - 1) {
			fputs("\u2026", out);
			return;
		}
		put_step(out, text, length, plain);
	}
}

/* A spreadsheet takes what begins like that for a formula, and may run it.  A number is
 * just a number. */
static bool is_formula(const char *text)
{
	char *end;

	if (!*text || !strchr("=+-@", *text))
		return false;
	strtod(text, &end);
	return end == text || *end;
}

void put_csv(FILE *out, const char *text)
{
	size_t length, columns;
	bool plain, quoted;

	if (!text)
		return;
	quoted = strpbrk(text, ",\"\r\n") != NULL || is_formula(text);
	if (quoted)
		putc('"', out);
	if (is_formula(text))
		putc('\'', out);
	for (; *text; text += length) {
		length = step(text, &columns, &plain);
		if (*text == '"')
			putc('"', out);
		put_step(out, text, length, plain);
	}
	if (quoted)
		putc('"', out);
}

const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}
