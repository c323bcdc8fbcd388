/*
 * All text from a recording is printed through this file.  The name of a
 * symbol, a thread or a file may hold anything: ESC sequences, quotes, half of
 * a UTF-8 sequence.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "os/characters.h"

struct range {
	uint32_t first, last;
};

/* Combining marks, and characters that join others. */
static const struct range without_width[] = {
	{ 0x0300, 0x036f }, { 0x0483, 0x0489 }, { 0x0591, 0x05bd },
	{ 0x0610, 0x061a }, { 0x064b, 0x065f }, { 0x093c, 0x093c },
	{ 0x0941, 0x0948 }, { 0x094d, 0x094d }, { 0x0e31, 0x0e31 },
	{ 0x0e34, 0x0e3a }, { 0x0e47, 0x0e4e }, { 0x1ab0, 0x1aff },
	{ 0x1dc0, 0x1dff }, { 0x200b, 0x200d }, { 0x20d0, 0x20ff },
	{ 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f },
};

/* East Asian full-width characters, and emoji. */
static const struct range wide[] = {
	{ 0x1100, 0x115f },   { 0x2e80, 0x303e },   { 0x3041, 0xa4cf },
	{ 0xa960, 0xa97f },   { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },
	{ 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },
	{ 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff }, { 0x1f900, 0x1f9ff },
	{ 0x20000, 0x3fffd },
};

static bool is_in(const struct range *ranges, size_t count, uint32_t c)
{
	size_t i;

	for (i = 0; i < count && c >= ranges[i].first; i++)
		if (c <= ranges[i].last)
			return true;
	return false;
}

/* The same result as wcwidth(), which knows only ASCII unless the locale uses
 * UTF-8. */
static size_t width_of(uint32_t c)
{
	if (is_in(without_width, sizeof(without_width) / sizeof(*without_width),
		  c))
		return 0;
	return is_in(wide, sizeof(wide) / sizeof(*wide), c) ? 2 : 1;
}

/*
 * Takes one step through @text: its length in bytes, and its width in columns
 * of a terminal.  *@plain tells whether these bytes may be printed as they are.
 */
static size_t step(const char *text, size_t *columns, bool *plain)
{
	uint32_t c;
	size_t length = character_at(text, SIZE_MAX, &c);

	*plain = length && character_is_harmless(c);
	if (!length)
		length = 1;
	*columns = *plain ? width_of(c) : length * 4;
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
	size_t all = text_plain_bytes(text), columns;
	bool plain;

	text += all;
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

void put_text_ends(FILE *out, const char *text, size_t columns)
{
	size_t left = text_columns(text), width, length;
	bool plain;

	if (left > columns && columns < 4) {
		put_text_cut(out, text, columns);
		return;
	}
	if (left > columns) {
		put_text_cut(out, text, columns / 4);
		columns -= columns / 4;
	}
	for (; left > columns; text += length) {
		length = step(text, &width, &plain);
		left -= width;
	}
	put_text(out, text);
}

/* A spreadsheet takes such a text for a formula, and may run it.  A plain
 * number is safe. */
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
