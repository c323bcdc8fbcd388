/* What somebody may have meant who made a typing error. */
#ifndef RUN_NEAREST_H
#define RUN_NEAREST_H

#include <stddef.h>

/* A word and what the best of those compared with it so far differs by. */
struct nearest {
	const char *word;
	size_t length;
	const char *best;	/* NULL: none is near */
	unsigned distance;
};

/* nearest_begin - compare with the first @length characters of @word */
void nearest_begin(struct nearest *nearest, const char *word, size_t length);

/*
 * nearest_add - compare with the first @length characters of @candidate
 *
 * It becomes the best if fewer letters are wrong, missing, too many or in the
 * wrong order than with the best so far; more than a third of the word, or more
 * than three, is another word.
 */
void nearest_add(struct nearest *nearest, const char *candidate, size_t length);

/* nearest_to - the word of @list, which ends with NULL, that is nearest to
 * @word, or NULL */
const char *nearest_to(const char *word, const char *const *list);

#endif
