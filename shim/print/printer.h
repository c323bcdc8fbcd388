/*
 * The state of a text under construction: appends to the text, and reads the bytes of
 * the value.
 */
#ifndef SHIM_PRINTER_H
#define SHIM_PRINTER_H

#include "print/print.h"

#include <stdbool.h>
#include <stdint.h>

struct printer {
	const struct print_job *job;
	struct print_space *space;
	const struct shim_typetree_node *nodes;
	const struct shim_typetree_part *parts;
	const char *names;
	bool is_json, is_plain, is_long;
	unsigned depth;
	char *text;
	size_t size, length;
	bool is_cut; /* the text has reached its limit */
};

/* Bytes of the value itself, or of memory that the callback reads. */
struct place {
	uintptr_t address;
	bool is_own;
};

static inline struct place place_at(struct place place, uint64_t offset)
{
	place.address += offset;
	return place;
}

/* --- text --- */

/* Appends @bytes, which are one character, completely or not at all. */
void printer_put(struct printer *printer, const char *bytes, size_t size);

void printer_put_string(struct printer *printer, const char *string);

/* Appends @plain, or @json if the text is JSON. */
void printer_put_either(struct printer *printer, const char *plain,
			const char *json);

void printer_put_hex(struct printer *printer, uint64_t number);

void printer_put_decimal(struct printer *printer, uint64_t number);

/* Appends the first character of @text, escaped for a string in @quote.  Returns its
 * size in @text. */
size_t printer_put_escaped(struct printer *printer, const unsigned char *text,
			   size_t size, char quote);

/* Appends all of @text, escaped for a string in @quote. */
void printer_put_all_escaped(struct printer *printer, const unsigned char *text,
			     size_t size, char quote);

/* Appends @name, escaped. */
void printer_put_name(struct printer *printer, const char *name);

/* Appends a word: bare in text, a string in JSON. */
void printer_put_word(struct printer *printer, const char *word);

/* Appends a note that the memory at @address cannot be read. */
void printer_put_unreadable(struct printer *printer, uintptr_t address);

/* Appends "{...}" in place of a class that is nested too deeply. */
void printer_put_elision(struct printer *printer);

/* Whether the text has the length at which lists end. */
bool printer_is_full(const struct printer *printer);

/* Stores @c in UTF-8 and returns its length. */
size_t printer_encode_utf8(uint32_t c, char *text);

/* --- bytes --- */

void printer_copy(void *to, const void *from, size_t size);

/* The number of bytes from @address to the end of its page. */
size_t printer_left_in_page(uintptr_t address);

/* Reads memory of the process that has the value; the @size bytes are in one page. */
bool printer_read(struct printer *printer, uintptr_t from, void *to,
		  size_t size);

/* Copies @size bytes of @place, at most PRINT_WINDOW; false if they cannot be read. */
bool printer_get(struct printer *printer, struct place place, void *to,
		 size_t size);

#endif
