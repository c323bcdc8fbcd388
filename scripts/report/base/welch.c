/*
 * The arithmetic of diff: means and deviations by Welford's sums, and Student's
 * distribution by the continued fraction of the incomplete beta function.
 */
#include <math.h>
#include <stdbool.h>

#include "base/welch.h"

#define CONFIDENCE 0.01
#define STEPS	   300

void welch_add(struct welch *welch, double value)
{
	double distance = value - welch->mean;

	welch->runs++;
	welch->mean += distance / welch->runs;
	welch->squares += distance * (value - welch->mean);
}

static double variance(const struct welch *welch)
{
	return welch->runs > 1 ? fmax(welch->squares, 0) / (welch->runs - 1) :
				 NAN;
}

double welch_deviation(const struct welch *welch)
{
	return sqrt(variance(welch));
}

/* Lentz's forward method; it is fast where x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), result, term, step;
	int n;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	result = d;
	for (n = 1; n <= STEPS; n++) {
		int odd;

		for (odd = 0; odd < 2; odd++) {
			term = odd ? -(a + n) * (a + b + n) * x /
					       ((a + 2 * n) * (a + 2 * n + 1)) :
				     n * (b - n) * x /
					       ((a + 2 * n - 1) * (a + 2 * n));
			d = 1 + term * d;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = 1 + term / c;
			c = fabs(c) < tiny ? tiny : c;
			step = c * d;
			result *= step;
		}
		if (fabs(step - 1) < 1e-12)
			break;
	}
	return result;
}

static double incomplete_beta(double a, double b, double x)
{
	double front;

	if (x <= 0)
		return 0;
	if (x >= 1)
		return 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) +
		    b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* The probability that |t| is as large or larger. */
static double student_tails(double t, double freedom)
{
	return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

double student_limit(double chance, double freedom)
{
	double low = 0, high = 1;
	int i;

	while (student_tails(high, freedom) > chance && high < 1e12)
		high *= 2;
	for (i = 0; i < 100; i++) {
		double middle = (low + high) / 2;

		if (student_tails(middle, freedom) > chance)
			low = middle;
		else
			high = middle;
	}
	return high;
}

struct change welch_change(const struct welch *first,
			   const struct welch *second)
{
	struct change change = { .by = second->mean - first->mean,
				 .error = NAN,
				 .chance = NAN };
	double a = variance(first), b = variance(second), error, freedom;

	if (isnan(a) && isnan(b))
		return change;
	a = (isnan(a) ? b : a) / first->runs;
	b = (isnan(b) ? variance(first) : b) / second->runs;
	error = sqrt(a + b);
	if (!(error > 0)) {
		change.error = 0;
		change.chance = change.by != 0 ? 0 : 1;
		return change;
	}
	if (first->runs < 2 || second->runs < 2)
		freedom = first->runs + second->runs - 2;
	else
		freedom = (a + b) * (a + b) /
			  (a * a / (first->runs - 1) +
			   b * b / (second->runs - 1));
	change.chance = student_tails(change.by / error, freedom);
	change.error = student_limit(CONFIDENCE, freedom) * error;
	return change;
}

/* Whether @runs of each would show @by; variances of single runs are @a and @b. */
static bool would_tell(double by, double a, double b, unsigned int runs)
{
	double freedom = (runs - 1) * (a + b) * (a + b) / (a * a + b * b);

	return student_limit(CONFIDENCE, freedom) * sqrt((a + b) / runs) < by;
}

unsigned int welch_runs_to_tell(const struct welch *first,
				const struct welch *second)
{
	double by = fabs(second->mean - first->mean);
	double a = variance(first), b = variance(second);
	unsigned int few = 1, many = 2, runs;

	if ((isnan(a) && isnan(b)) || !(by > 0))
		return 0;
	a = isnan(a) ? b : a;
	b = isnan(b) ? a : b;
	/* Doubles the number until it suffices, then searches between the last two. */
	while (many < WELCH_RUNS_MAX && !would_tell(by, a, b, many)) {
		few = many;
		many *= 2;
	}
	while (many - few > 1) {
		runs = few + (many - few) / 2;
		if (would_tell(by, a, b, runs))
			many = runs;
		else
			few = runs;
	}
	return many < WELCH_RUNS_MAX ? many : WELCH_RUNS_MAX;
}
