/*
 * Change points by binary segmentation with a permutation test.  For a given set of
 * values the pooled t of a split grows with the squared distance of the two means,
 * weighted by n1 * n2 / (n1 + n2): the permutations compare that alone.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/changes.h"
#include "base/memory.h"

struct search {
	const double *values;
	const bool *begins;
	double level;
	struct change_point *points;
	uint32_t count, room;
	double *shuffled;
	uint64_t random;
};

/* xorshift64* */
static uint64_t next_random(struct search *search)
{
	search->random ^= search->random >> 12;
	search->random ^= search->random << 25;
	search->random ^= search->random >> 27;
	return search->random * 0x2545f4914f6cdd1dull;
}

static double mean(const double *values, uint32_t count)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < count; i++)
		sum += values[i];
	return sum / count;
}

/* The best place to split @count values, and how good it is; 0: there is none. */
static uint32_t best_split(const double *values, const bool *begins,
			   uint32_t count, double *best)
{
	double all = mean(values, count), sum = 0, distance;
	uint32_t i, at = 0;

	*best = 0;
	for (i = 1; i < count; i++) {
		/* relative to the mean: the sum of all is 0 */
		sum += values[i - 1] - all;
		if (!begins[i])
			continue;
		distance = sum * sum * count /
			   ((double)i * (double)(count - i));
		if (distance > *best) {
			*best = distance;
			at = i;
		}
	}
	return at;
}

static void shuffle(struct search *search, double *values, uint32_t count)
{
	uint32_t i, other;
	double value;

	for (i = count; i > 1; i--) {
		other = (uint32_t)(next_random(search) % i);
		value = values[i - 1];
		values[i - 1] = values[other];
		values[other] = value;
	}
}

/* Stops as soon as the chance is above the level. */
static double chance_of(struct search *search, uint32_t from, uint32_t count,
			double found)
{
	uint32_t all = (uint32_t)(10 / search->level), as_good = 0, i;
	double other;

	memcpy(search->shuffled, search->values + from,
	       count * sizeof(*search->shuffled));
	for (i = 0; i < all; i++) {
		shuffle(search, search->shuffled, count);
		best_split(search->shuffled, search->begins + from, count,
			   &other);
		/* sums in another order may differ in their last bits */
		as_good += other >= found * (1 - 1e-9);
		if (as_good + 1 > search->level * (all + 1))
			return 1;
	}
	return (as_good + 1.0) / (all + 1.0);
}

static void search_part(struct search *search, uint32_t from, uint32_t count)
{
	double found, chance;
	uint32_t at = best_split(search->values + from, search->begins + from,
				 count, &found);

	if (!at || search->count == search->room)
		return;
	chance = chance_of(search, from, count, found);
	if (chance > search->level)
		return;
	search->points[search->count++] = (struct change_point){
		.at = from + at, .chance = chance
	};
	search_part(search, from, at);
	search_part(search, from + at, count - at);
}

static int by_place(const void *left, const void *right)
{
	const struct change_point *a = left, *b = right;

	return a->at < b->at ? -1 : a->at > b->at;
}

uint32_t changes_find(const double *values, const bool *begins, uint32_t count,
		      double level, struct change_point *points, uint32_t room)
{
	struct search search = { .values = values,
				 .begins = begins,
				 .level = level,
				 .points = points,
				 .room = room,
				 .random = 88172645463325252ull };
	uint32_t i, first, end;

	search.shuffled = allocate(count, sizeof(*search.shuffled));
	search_part(&search, 0, count);
	free(search.shuffled);
	if (search.count)
		qsort(points, search.count, sizeof(*points), by_place);
	for (i = 0; i < search.count; i++) {
		first = i ? points[i - 1].at : 0;
		end = i + 1 < search.count ? points[i + 1].at : count;
		points[i].before = mean(values + first, points[i].at - first);
		points[i].after = mean(values + points[i].at,
				       end - points[i].at);
	}
	return search.count;
}
