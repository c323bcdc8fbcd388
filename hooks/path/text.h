/* Text in memory of the caller, without libc. */
#ifndef PATH_TEXT_H
#define PATH_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
	char *at, *end;
};

static inline void add_text(struct text *text, const char *string)
{
	while (*string && text->at < text->end)
		*text->at++ = *string++;
}

static inline size_t length_of(const char *string)
{
	size_t length = 0;

	while (string[length])
		length++;
	return length;
}

static inline bool is_equal(const char *a, const char *b, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (a[i] != b[i])
			return false;
	return true;
}

#endif
