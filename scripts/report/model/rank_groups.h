/* Ranks that are unlike the others, and ranks that are alike. */
#ifndef REPORT_MODEL_RANK_GROUPS_H
#define REPORT_MODEL_RANK_GROUPS_H

#include <stdint.h>

#include "model/ranks.h"

/*
 * The median of a row, and the median of the distances from it (MAD).  A rank is
 * an outlier if its distance is more than OUTLIER_SIGMAS standard deviations,
 * which are 1.4826 MAD for normally distributed values, and more than
 * OUTLIER_SHARE of the median: equal ranks have a MAD of almost zero.
 */
#define OUTLIER_SIGMAS 5
#define OUTLIER_SHARE  0.1
#define OUTLIER_RANKS  8 /* fewer ranks have no outliers */

struct rank_center {
	double median, mad;
	uint32_t *outliers; /* the farthest first */
	uint32_t count;
};

/* free() the outliers. */
void rank_center_find(struct rank_center *center, const struct ranks *ranks,
		      const struct rank_row *row);

/*
 * Groups of ranks whose figures of all functions differ by at most ALIKE_SHARE of
 * their mean sum from those of the first rank of the group.
 */
#define ALIKE_SHARE 0.2
#define GROUPS_MAX  16

struct rank_groups {
	uint32_t *of_rank; /* groups are numbered by their first rank */
	uint32_t count;	   /* 0: there are more than GROUPS_MAX */
};

/* free() of_rank. */
void rank_groups_find(struct rank_groups *groups, const struct ranks *ranks);

#endif
