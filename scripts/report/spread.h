/* Whether two sets of runs differ by more than runs differ among themselves. */
#ifndef REPORT_SPREAD_H
#define REPORT_SPREAD_H

/* What was seen of one figure, a run at a time. */
struct spread {
	unsigned int runs;
	double mean;
	double squares;			/* of distances from the mean, summed */
};

/* How far apart the means of two sets are. */
struct change {
	double by;			/* the second less the first */
	double error;			/* half of the 99 % confidence interval of
					 * @by; NAN: unknown */
	double chance;			/* that so much or more comes about though
					 * nothing has changed; NAN: unknown */
};

void spread_add(struct spread *spread, double value);
/* Of single runs; NAN when there was but one. */
double spread_deviation(const struct spread *spread);
/*
 * Welch's test.  One run alone says nothing of how much runs vary: a side that
 * has one is taken to vary as the other does; when both have one, nobody knows.
 */
struct change spread_change(const struct spread *first,
			    const struct spread *second);

#endif
