/*
 * Memory that is there or ends the program.  NULL is never returned; what keep_*() return
 * lives as long as we do.
 */
#ifndef REPORT_BASE_MEMORY_H
#define REPORT_BASE_MEMORY_H

#include <stddef.h>

/* NULL is never returned.  What keep_*() return lives as long as we do. */
void *allocate(size_t count, size_t size);
void *grow(void *memory, size_t count, size_t size);
const char *keep_text(const char *text, size_t size);
const char *keep_format(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* Makes room for one more element in an array that doubles. */
#define GROW(array, count, capacity) \
	do { \
		if ((count) == (capacity)) { \
			(capacity) = (capacity) ? (capacity)*2 : 16; \
			(array) = grow((array), (capacity), sizeof(*(array))); \
		} \
	} while (0)

#endif
