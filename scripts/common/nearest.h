/* The word that a user with a typing error may have meant. */
#ifndef COMMON_NEAREST_H
#define COMMON_NEAREST_H

#include <stddef.h>

/* A word, and the nearest candidate so far with its distance. */
struct nearest {
	const char *word;
	size_t length;
	const char *best; /* NULL: none is near */
	unsigned distance;
};

/* nearest_begin - compare with the first @length characters of @word */
void nearest_begin(struct nearest *nearest, const char *word, size_t length);

/*
 * nearest_add - compare with the first @length characters of @candidate
 *
 * The candidate becomes the best if it has fewer wrong, missing, extra or swapped
 * letters than the best so far.  More than three of these, or more than a third of the
 * word, make it another word.
 */
void nearest_add(struct nearest *nearest, const char *candidate, size_t length);

/* nearest_to - the word of @list, which ends with NULL, that is nearest to
 * @word, or NULL */
const char *nearest_to(const char *word, const char *const *list);

/* nearest_option - the long option that is nearest to @word ("--nmae" or "--nmae=value"),
 * or NULL; @options ends with a name of NULL */
struct option;
const char *nearest_option(const char *word, const struct option *options);

#endif
