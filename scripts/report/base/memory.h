/*
 * Allocation that ends the program on failure: these functions never return
 * NULL.  The strings of keep_*() stay valid until the process ends.
 */
#ifndef REPORT_BASE_MEMORY_H
#define REPORT_BASE_MEMORY_H

#include <stddef.h>

/* These functions never return NULL.  The strings of keep_*() stay valid until
 * the process ends. */
void *allocate(size_t count, size_t size);
void *grow(void *memory, size_t count, size_t size);
const char *keep_text(const char *text, size_t size);
const char *keep_format(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* Makes room for one more element; the array doubles. */
#define GROW(array, count, capacity) \
	do { \
		if ((count) == (capacity)) { \
			(capacity) = (capacity) ? (capacity)*2 : 16; \
			(array) = grow((array), (capacity), sizeof(*(array))); \
		} \
	} while (0)

#endif
