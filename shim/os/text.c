/*
 * Text without libc: a bounded buffer that is always terminated.
 */
#include "os/text.h"

#include <shim/banned.h>

void text_init(struct text *text, char *memory, size_t size)
{
	*text = (struct text){ .start = memory, .size = size };
	memory[0] = '\0';
}

void text_add_part(struct text *text, const char *string, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (text->length + 1 >= text->size) {
			text->cut = true;
			break;
		}
		text->start[text->length++] = string[i];
	}
	text->start[text->length] = '\0';
}

void text_add(struct text *text, const char *string)
{
	text_add_part(text, string, text_length(string));
}

/* The length in bytes of the character at @string.  0 if it is not UTF-8, or not plain:
 * C0, DEL, C1, and marks and separators (U+061C, U+200E, U+200F, U+2028 to U+202E,
 * U+2066 to U+2069, U+FEFF). */
static size_t harmless_length(const unsigned char *string)
{
	const unsigned first = string[0];
	const size_t length = first < 0x80 ? 1 :
			      first < 0xe0 ? 2 :
			      first < 0xf0 ? 3 :
					     4;
	uint32_t c = first & (0xffu >> (length + (length > 1)));

	if ((first >= 0x80 && first < 0xc2) || first > 0xf4)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((string[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (string[i] & 0x3f);
	}
	if ((length == 3 && c < 0x800) || (length == 4 && c < 0x10000) ||
	    c > 0x10ffff || c - 0xd800 < 0x800)
		return 0;
	if (c < 0x20 || c - 0x7f < 0x21 || c == 0x61c || c - 0x200e < 2 ||
	    c - 0x2028 < 7 || c - 0x2066 < 4 || c == 0xfeff)
		return 0;
	return length;
}

void text_add_harmless(struct text *text, const char *string)
{
	static const char digits[] = "0123456789abcdef";

	while (*string) {
		const unsigned char byte = (unsigned char)*string;
		const char escaped[] = { '\\', 'x', digits[byte >> 4],
					 digits[byte & 15] };
		size_t length = harmless_length((const unsigned char *)string);

		text_add_part(text, length ? string : escaped,
			      length ? length : sizeof(escaped));
		string += length ? length : 1;
	}
}

void text_add_number(struct text *text, uint64_t number)
{
	char digits[20];
	size_t n = sizeof(digits);

	do
		digits[--n] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	text_add_part(text, digits + n, sizeof(digits) - n);
}

size_t text_length(const char *string)
{
	size_t length = 0;

	while (string[length])
		length++;
	return length;
}

bool text_equal(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

const char *text_after(const char *string, const char *prefix)
{
	while (*prefix)
		if (*string++ != *prefix++)
			return NULL;
	return string;
}

const char *text_base(const char *path)
{
	const char *base = path;

	for (; *path; path++)
		if (*path == '/')
			base = path + 1;
	return base;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return 16;
}

static uint64_t read_number(const char **at, int base)
{
	uint64_t number = 0;

	while (digit(**at) < base)
		number = number * (uint64_t)base + (uint64_t)digit(*(*at)++);
	return number;
}

uint64_t text_read_hex(const char **at)
{
	return read_number(at, 16);
}

uint64_t text_read_decimal(const char **at)
{
	return read_number(at, 10);
}
