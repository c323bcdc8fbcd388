/*
 * Text without libc: appends to a bounded buffer and keeps it NUL-terminated.
 */
#include "os/text.h"

#include "os/characters.h"

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

void text_add_harmless(struct text *text, const char *string)
{
	static const char digits[] = "0123456789abcdef";

	while (*string) {
		bool is_plain;
		size_t length = character_step(string, &is_plain);

		if (is_plain)
			text_add_part(text, string, length);
		for (size_t i = 0; !is_plain && i < length; i++) {
			const unsigned char byte = (unsigned char)string[i];
			const char escaped[] = { '\\', 'x', digits[byte >> 4],
						 digits[byte & 15] };

			text_add_part(text, escaped, sizeof(escaped));
		}
		string += length;
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
