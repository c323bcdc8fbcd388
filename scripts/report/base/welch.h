/* Whether two sets of runs differ by more than runs differ among themselves. */
#ifndef REPORT_BASE_WELCH_H
#define REPORT_BASE_WELCH_H

/* What was seen of one figure, a run at a time. */
struct welch {
	unsigned int runs;
	double mean;
	double squares; /* of distances from the mean, summed */
};

/* How far apart the means of two sets are. */
struct change {
	double by; /* the second less the first */
	/* half of the 99 % confidence interval of @by; NAN: unknown */
	double error;
	/* that so much or more comes about though nothing has changed; NAN: unknown */
	double chance;
};

void welch_add(struct welch *welch, double value);
/* Of single runs; NAN when there was but one. */
double welch_deviation(const struct welch *welch);
/*
 * Welch's test.  One run alone says nothing of how much runs vary: a side that
 * has one is taken to vary as the other does; when both have one, nobody knows.
 */
struct change welch_change(const struct welch *first,
			   const struct welch *second);
/* The t of Student's distribution that only @chance of all are beyond, either side. */
double student_limit(double chance, double freedom);

#endif
