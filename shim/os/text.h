/*
 * Strings without libc: functions that append text to a buffer, which always ends in a
 * NUL.  They cut text that does not fit and set @cut.
 */
#ifndef SHIM_TEXT_H
#define SHIM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *start;
	size_t size;   /* of the memory */
	size_t length; /* without the NUL */
	bool cut;
};

void text_init(struct text *text, char *memory, size_t size);
void text_add(struct text *text, const char *string);
void text_add_part(struct text *text, const char *string, size_t length);
/* Adds @string.  Bytes that a terminal would not only print become \xNN: control
 * characters, marks that change the direction of text, and invalid UTF-8. */
void text_add_harmless(struct text *text, const char *string);
void text_add_number(struct text *text, uint64_t number);

size_t text_length(const char *string);
bool text_equal(const char *a, const char *b);
/* The part of @string after @prefix; NULL if @string does not begin with @prefix. */
const char *text_after(const char *string, const char *prefix);
/* The part of a path after its last slash. */
const char *text_base(const char *path);
/* Reads a hexadecimal number and moves *@at past its last digit. */
uint64_t text_read_hex(const char **at);
uint64_t text_read_decimal(const char **at);

#endif
