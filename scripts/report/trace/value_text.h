/*
 * Formats values as text, with the code that prints them in programs.  Only
 * this file and value_text.c depend on that code.
 */
#ifndef REPORT_TRACE_VALUE_TEXT_H
#define REPORT_TRACE_VALUE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VALUE_SIZE_MAX 256 /* size of a raw value in bytes */

/* Whether @tree, a struct shim_typetree of @size bytes, is valid for printing a
 * recorded value; also gives the size of that value. */
bool value_is_valid(const void *tree, size_t size, uint32_t *value_size);

/* Writes as much text as fits into @room bytes, with a NUL. */
void value_print(const void *tree, const unsigned char *value, char *text,
		 size_t room);

/* enum shim_unavailable in words, or NULL. */
const char *value_missing_text(unsigned int reason);

#endif
