/* Compares ranks with their median, and with each other. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "model/model.h"
#include "model/rank_groups.h"
#include "model/ranks.h"

#define SIGMAS_OF_MAD 1.4826

/* More figures than this are not compared: a gigabyte. */
#define FIGURES_MAX (128u << 20)

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/* Sorts @values. */
static double median_of(double *values, uint32_t count)
{
	qsort(values, count, sizeof(*values), compare_doubles);
	return count % 2 ? values[count / 2] :
			   (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void spread_row(const struct ranks *ranks, const struct rank_row *row,
		       double *each)
{
	uint32_t i;

	for (i = row->first; i != NONE; i = ranks->figures[i].next)
		each[ranks->figures[i].rank] += ranks->figures[i].value;
}

struct distance {
	double far;
	uint32_t rank;
};

static int compare_distances(const void *left, const void *right)
{
	const struct distance *a = left, *b = right;

	if (a->far != b->far)
		return a->far > b->far ? -1 : 1;
	return (a->rank > b->rank) - (a->rank < b->rank);
}

static void find_outliers(struct rank_center *center, const double *each,
			  uint32_t count)
{
	double limit = fmax(OUTLIER_SIGMAS * SIGMAS_OF_MAD * center->mad,
			    OUTLIER_SHARE * center->median);
	struct distance *far = allocate(count, sizeof(*far));
	uint32_t i;

	for (i = 0; i < count; i++)
		if (fabs(each[i] - center->median) > limit)
			far[center->count++] = (struct distance){
				fabs(each[i] - center->median), i
			};
	qsort(far, center->count, sizeof(*far), compare_distances);
	for (i = 0; i < center->count; i++)
		center->outliers[i] = far[i].rank;
	free(far);
}

void rank_center_find(struct rank_center *center, const struct ranks *ranks,
		      const struct rank_row *row)
{
	uint32_t count = ranks->count, i;
	double *each = allocate(count, sizeof(*each));
	double *sorted = allocate(count, sizeof(*sorted));

	*center = (struct rank_center){ .outliers = allocate(
						count, sizeof(uint32_t)) };
	spread_row(ranks, row, each);
	for (i = 0; i < count; i++)
		sorted[i] = each[i];
	if (count > 0)
		center->median = median_of(sorted, count);
	for (i = 0; i < count; i++)
		sorted[i] = fabs(each[i] - center->median);
	if (count > 0)
		center->mad = median_of(sorted, count);
	if (count >= OUTLIER_RANKS)
		find_outliers(center, each, count);
	free(each);
	free(sorted);
}

static bool is_alike(const double *a, const double *b, uint32_t count)
{
	double difference = 0, sum = 0;
	uint32_t i;

	for (i = 0; i < count; i++) {
		difference += fabs(a[i] - b[i]);
		sum += a[i] + b[i];
	}
	return difference <= ALIKE_SHARE * sum / 2;
}

/* All figures, rank by rank; the caller frees them. */
static double *list_figures(const struct ranks *ranks)
{
	uint32_t count = ranks->model->function_count, f, i;
	double *figures = allocate((size_t)ranks->count * count,
				   sizeof(*figures));

	for (f = 0; f < count; f++)
		for (i = ranks->functions[f].first; i != NONE;
		     i = ranks->figures[i].next)
			figures[(size_t)ranks->figures[i].rank * count + f] +=
				ranks->figures[i].value;
	return figures;
}

void rank_groups_find(struct rank_groups *groups, const struct ranks *ranks)
{
	uint32_t count = ranks->model->function_count, rank, i;
	uint32_t first[GROUPS_MAX];
	double *figures;

	*groups = (struct rank_groups){ .of_rank = allocate(ranks->count,
							    sizeof(uint32_t)) };
	if ((uint64_t)ranks->count * count > FIGURES_MAX)
		return;
	figures = list_figures(ranks);
	for (rank = 0; rank < ranks->count; rank++) {
		for (i = 0; i < groups->count; i++)
			if (is_alike(figures + (size_t)first[i] * count,
				     figures + (size_t)rank * count, count))
				break;
		if (i == GROUPS_MAX) {
			groups->count = 0;
			break;
		}
		if (i == groups->count)
			first[groups->count++] = rank;
		groups->of_rank[rank] = i;
	}
	free(figures);
}
