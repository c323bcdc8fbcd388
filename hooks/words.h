/* What stands behind the ':' of a profiler: words, and keys with values. */
#ifndef WORDS_H
#define WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What follows @key in the @size characters from @item on, or NULL. */
static inline const char *value_of(const char *item, size_t size,
				   const char *key)
{
	size_t i = 0;

	while (i < size && key[i] && item[i] == key[i])
		i++;
	return key[i] == '\0' ? item + i : NULL;
}

static inline bool is_word(const char *item, size_t size, const char *word)
{
	return value_of(item, size, word) == item + size;
}

/* The same as value_of() of a text that ends with a NUL. */
static inline const char *after(const char *text, const char *word)
{
	return value_of(text, SIZE_MAX, word);
}

#endif
