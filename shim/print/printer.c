/*
 * Appends to a text, and reads the bytes of a value.  A text is valid UTF-8 without
 * characters that change a terminal.
 */
#include "print/printer.h"

#include "os/characters.h"

#include <shim/banned.h>

#define PAGE_SIZE    4096u
#define SHORT_LENGTH 4096u /* bytes of text after which lists end */
#define LONG_LENGTH  65536u

/* --- text --- */

void printer_put(struct printer *printer, const char *bytes, size_t size)
{
	if (!printer->is_cut && printer->length + size < printer->size) {
		for (size_t i = 0; i < size; i++)
			printer->text[printer->length + i] = bytes[i];
		printer->text[printer->length + size] = '\0';
	} else {
		printer->is_cut = true;
	}
	printer->length += size;
}

void printer_put_string(struct printer *printer, const char *string)
{
	for (; *string; string++)
		printer_put(printer, string, 1);
}

void printer_put_either(struct printer *printer, const char *plain,
			const char *json)
{
	printer_put_string(printer, printer->is_json ? json : plain);
}

static char hex_digit(unsigned value)
{
	return "0123456789abcdef"[value & 15];
}

void printer_put_hex(struct printer *printer, uint64_t number)
{
	int shift = 60;

	printer_put_string(printer, "0x");
	while (shift > 0 && number >> shift == 0)
		shift -= 4;
	for (; shift >= 0; shift -= 4) {
		char digit = hex_digit((unsigned)(number >> shift));

		printer_put(printer, &digit, 1);
	}
}

void printer_put_decimal(struct printer *printer, uint64_t number)
{
	char digits[20];
	size_t n = sizeof(digits);

	do
		digits[--n] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	for (; n < sizeof(digits); n++)
		printer_put(printer, &digits[n], 1);
}

size_t printer_encode_utf8(uint32_t c, char *text)
{
	size_t length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (length == 1) {
		text[0] = (char)c;
		return 1;
	}
	for (size_t i = length - 1; i > 0; i--, c >>= 6)
		text[i] = (char)(0x80 | (c & 0x3f));
	text[0] = (char)((0xf00u >> length & 0xffu) | c);
	return length;
}

static void put_byte_escape(struct printer *printer, unsigned char byte)
{
	char escape[] = { '\\', 'x', hex_digit(byte >> 4), hex_digit(byte) };

	/* JSON has no escape for bytes, so it gets the characters "\xNN". */
	printer_put_either(printer, "", "\\");
	for (size_t i = 0; i < sizeof(escape); i++)
		printer_put(printer, &escape[i], 1);
}

/* All characters that need it are in the first plane of Unicode. */
static void put_json_escape(struct printer *printer, uint32_t c)
{
	printer_put_string(printer, "\\u");
	for (int shift = 12; shift >= 0; shift -= 4) {
		char digit = hex_digit(c >> shift);

		printer_put(printer, &digit, 1);
	}
}

static const char *short_escape(uint32_t c, char quote)
{
	switch (c) {
	case '\n': return "\\n";
	case '\t': return "\\t";
	case '\r': return "\\r";
	case '\\': return "\\\\";
	case '"': return quote == '"' ? "\\\"" : NULL;
	case '\'': return quote == '\'' ? "\\'" : NULL;
	default: return NULL;
	}
}

size_t printer_put_escaped(struct printer *printer, const unsigned char *text,
			   size_t size, char quote)
{
	uint32_t c;
	size_t length = character_at((const char *)text, size, &c);
	const char *escape = length ?
				     short_escape(c, printer->is_json ? '"' :
									quote) :
				     NULL;

	if (length == 0) {
		put_byte_escape(printer, text[0]);
		return 1;
	}
	if (escape)
		printer_put_string(printer, escape);
	else if (character_is_harmless(c))
		printer_put(printer, (const char *)text, length);
	else if (printer->is_json)
		put_json_escape(printer, c);
	else
		for (size_t i = 0; i < length; i++)
			put_byte_escape(printer, text[i]);
	return length;
}

void printer_put_all_escaped(struct printer *printer, const unsigned char *text,
			     size_t size, char quote)
{
	for (size_t at = 0; at < size;)
		at += printer_put_escaped(printer, text + at, size - at, quote);
}

static size_t length_of(const char *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return length;
}

void printer_put_name(struct printer *printer, const char *name)
{
	printer_put_all_escaped(printer, (const unsigned char *)name,
				length_of(name), '\0');
}

void printer_put_word(struct printer *printer, const char *word)
{
	printer_put_either(printer, "", "\"");
	printer_put_name(printer, word);
	printer_put_either(printer, "", "\"");
}

void printer_put_unreadable(struct printer *printer, uintptr_t address)
{
	printer_put_either(printer, "", "{\"unreadable\": \"");
	printer_put_hex(printer, address);
	printer_put_either(printer, " (unreadable)", "\"}");
}

void printer_put_elision(struct printer *printer)
{
	printer_put_either(printer, "{...}", "\"{...}\"");
}

bool printer_is_full(const struct printer *printer)
{
	return printer->length >
	       (printer->is_long ? LONG_LENGTH : SHORT_LENGTH);
}

/* --- bytes --- */

void printer_copy(void *to, const void *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
}

size_t printer_left_in_page(uintptr_t address)
{
	return PAGE_SIZE - address % PAGE_SIZE;
}

bool printer_read(struct printer *printer, uintptr_t from, void *to,
		  size_t size)
{
	const struct print_job *job = printer->job;

	return job->read && !printer->is_plain &&
	       job->read(job->argument, from, to, size) == 0;
}

/* Reads ahead: the next read is often of the following bytes. */
static bool move_window(struct printer *printer, uintptr_t from)
{
	struct print_space *space = printer->space;
	size_t size = printer_left_in_page(from);

	if (size > PRINT_WINDOW)
		size = PRINT_WINDOW;
	space->window_size = 0;
	if (!printer_read(printer, from, space->window, size))
		return false;
	space->window_start = from;
	space->window_size = size;
	return true;
}

static bool get_piece(struct printer *printer, uintptr_t from, void *to,
		      size_t size)
{
	struct print_space *space = printer->space;
	uintptr_t offset = from - space->window_start;

	if (offset >= space->window_size ||
	    size > space->window_size - offset) {
		if (!move_window(printer, from))
			return false;
		offset = 0;
	}
	printer_copy(to, space->window + offset, size);
	return true;
}

bool printer_get(struct printer *printer, struct place place, void *to,
		 size_t size)
{
	size_t first = printer_left_in_page(place.address);

	if (place.is_own) {
		printer_copy(to, (const void *)place.address, size);
		return true;
	}
	if (place.address + size < place.address)
		return false;
	if (first >= size)
		return get_piece(printer, place.address, to, size);
	return get_piece(printer, place.address, to, first) &&
	       get_piece(printer, place.address + first, (char *)to + first,
			 size - first);
}
