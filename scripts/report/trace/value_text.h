/*
 * Values as text, by the code that prints them in programs: this and value_text.c
 * are all that knows it.
 */
#ifndef REPORT_TRACE_VALUE_TEXT_H
#define REPORT_TRACE_VALUE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VALUE_SIZE_MAX 256 /* bytes of a raw value */

/* Whether @tree, a struct shim_typetree of which there are @size bytes, is one from which a
 * recorded value can be printed; how many bytes that has. */
bool value_is_valid(const void *tree, size_t size, uint32_t *value_size);

/* As much as @room bytes hold, with a NUL. */
void value_print(const void *tree, const unsigned char *value, char *text,
		 size_t room);

/* enum shim_unavailable in words, or NULL. */
const char *value_missing_text(unsigned int reason);

#endif
