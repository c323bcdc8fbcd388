/* Tests whether two sets of runs differ by more than the runs of one set differ
 * among themselves. */
#ifndef REPORT_BASE_WELCH_H
#define REPORT_BASE_WELCH_H

/* The values of one figure, collected one run at a time. */
struct welch {
	unsigned int runs;
	double mean;
	double squares; /* sum of the squared distances from the mean */
};

/* The difference between the means of two sets. */
struct change {
	double by; /* the second mean minus the first */
	/* half of the 99 % confidence interval of @by; NAN: unknown */
	double error;
	/* the probability of a difference of this size or more without any
	 * change (p-value); NAN: unknown */
	double chance;
};

void welch_add(struct welch *welch, double value);
/* The standard deviation of single runs; NAN if there was only one. */
double welch_deviation(const struct welch *welch);
/*
 * Welch's test.  One run alone does not show how much runs vary: a set of one
 * run is assumed to vary like the other set.  If both sets have one run, the
 * variation is unknown.
 */
struct change welch_change(const struct welch *first,
			   const struct welch *second);
/*
 * welch_runs_to_tell - how many runs of each set would show such a difference
 *
 * With this number, about half of the comparisons show the difference, if the means and
 * deviations stay.  Returns 0 if the deviation is unknown or there is no difference, and
 * at most WELCH_RUNS_MAX.
 */
#define WELCH_RUNS_MAX 10000
unsigned int welch_runs_to_tell(const struct welch *first,
				const struct welch *second);
/* The critical value of Student's t: |t| exceeds it with probability
 * @chance. */
double student_limit(double chance, double freedom);

#endif
