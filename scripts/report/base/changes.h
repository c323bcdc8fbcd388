/* Finds out where a series of measurements changes. */
#ifndef REPORT_BASE_CHANGES_H
#define REPORT_BASE_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

/* A change between two segments of a series. */
struct change_point {
	uint32_t at;	      /* the first value after the change */
	double before, after; /* means of the segments */
	/* the probability of such a change, or a greater one, by chance alone */
	double chance;
};

/*
 * changes_find - the change points of @count @values, in their order
 *
 * A change can only begin at a value whose @begins is true: the first run of a
 * version.  The statistic is the greatest two-sample t over all such places; a
 * permutation test judges it, which assumes no distribution; the two parts are
 * then searched alone (binary segmentation).  @level is the probability of finding
 * a change in a series without one.  The order of the permutations is fixed, so the
 * result is always the same.
 *
 * Stores at most @room points and returns their number.
 */
uint32_t changes_find(const double *values, const bool *begins, uint32_t count,
		      double level, struct change_point *points, uint32_t room);

#endif
