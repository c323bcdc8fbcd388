/*
 * Finds the name that a user may have meant, by edit distance.
 */
#include <getopt.h>
#include <string.h>

#include "common/nearest.h"

#define LENGTH_MAX   40
#define DISTANCE_MAX 3

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Row i of the table: the number of changes that turn i letters of @a into j of @b.
 * The two rows before are kept for swapped letters. */
static unsigned distance(const char *a, size_t a_length, const char *b,
			 size_t b_length)
{
	unsigned row[3][LENGTH_MAX + 1];

	for (size_t j = 0; j <= b_length; j++)
		row[0][j] = (unsigned)j;
	for (size_t i = 1; i <= a_length; i++) {
		unsigned *now = row[i % 3];
		const unsigned *last = row[(i + 2) % 3];
		const unsigned *before = row[(i + 1) % 3];

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= b_length; j++) {
			unsigned differs = a[i - 1] != b[j - 1];

			now[j] = least(least(last[j], now[j - 1]) + 1,
				       last[j - 1] + differs);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				now[j] = least(now[j], before[j - 2] + 1);
		}
	}
	return row[a_length % 3][b_length];
}

void nearest_begin(struct nearest *nearest, const char *word, size_t length)
{
	*nearest = (struct nearest){
		.word = word,
		.length = length,
		.distance = least((unsigned)length / 3, DISTANCE_MAX) + 1,
	};
}

void nearest_add(struct nearest *nearest, const char *candidate, size_t length)
{
	unsigned wrong;

	if (nearest->length > LENGTH_MAX || length > LENGTH_MAX)
		return;
	wrong = distance(nearest->word, nearest->length, candidate, length);
	if (wrong >= nearest->distance)
		return;
	nearest->distance = wrong;
	nearest->best = candidate;
}

const char *nearest_to(const char *word, const char *const *list)
{
	struct nearest nearest;

	nearest_begin(&nearest, word, strlen(word));
	for (; *list != NULL; list++)
		nearest_add(&nearest, *list, strlen(*list));
	return nearest.best;
}

const char *nearest_option(const char *word, const struct option *options)
{
	struct nearest nearest;

	if (strncmp(word, "--", 2) != 0)
		return NULL;
	nearest_begin(&nearest, word + 2, strcspn(word + 2, "="));
	for (; options->name != NULL; options++)
		nearest_add(&nearest, options->name, strlen(options->name));
	return nearest.best;
}
