/*
 * Allocation that ends the program on failure.  A report is a short-lived
 * process, so the memory of its tables is never freed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/messages.h"

void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size);

	if (!memory)
		die("out of memory");
	return memory;
}

void *grow(void *memory, size_t count, size_t size)
{
	memory = reallocarray(memory, count, size);
	if (!memory)
		die("out of memory");
	return memory;
}

const char *keep_text(const char *text, size_t size)
{
	static char *block;
	static size_t left;
	size_t length = strnlen(text, size);
	char *copy;

	if (length + 1 > left) {
		left = length + 1 > 65536 ? length + 1 : 65536;
		block = allocate(left, 1);
	}
	copy = block;
	memcpy(copy, text, length);
	copy[length] = '\0';
	block += length + 1;
	left -= length + 1;
	return copy;
}

const char *keep_format(const char *format, ...)
{
	va_list arguments;
	const char *kept;
	char *text;
	int length;

	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		die("out of memory");
	kept = keep_text(text, SIZE_MAX);
	free(text);
	return kept;
}
