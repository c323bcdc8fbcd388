/*
 * A burst is a while of about a millisecond of processor time, begun at random, in which
 * a function that is off was counted: n calls in d nanoseconds, which is a rate r = n/d.
 * The mean of the rates times the time off is the number of its calls; how much they
 * differ gives the error of the mean.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <shim/format.h>

#include "base/welch.h"
#include "model/budget.h"
#include "model/estimates.h"
#include "model/model.h"

/* The unit of rates: calls per 1/64 s. */
#define RATE_NS (1e9 / 64)
#define CHANCE	0.05
/* The largest likely number if none was seen: exp(-3) is CHANCE. */
#define NONE_SEEN 3
/* The cost of hooks may differ by this share from the calibrated cost. */
#define COST_VARIES 0.3
/* No call is shorter than this. */
#define CALL_NS 0.1

static struct estimate none_seen(const struct shim_throttled_node *node,
				 double off_ns)
{
	struct estimate estimate = { .is_known = node->ns > 0 };

	if (estimate.is_known)
		estimate.error = NONE_SEEN * off_ns / (double)node->ns;
	return estimate;
}

struct estimate estimate_calls(const struct shim_throttled_node *node,
			       double off_ns)
{
	static const struct estimate unknown = { .is_known = false };
	double bursts = (double)node->bursts, rates = (double)node->rates;
	double squares = ldexp((double)node->squares[1], 64) +
			 (double)node->squares[0];
	double variance, whiles = off_ns / RATE_NS;
	struct estimate estimate = { .is_known = true };

	/* Off since the last sample, or for less than one: a rate is needed, too. */
	if (node->bursts < 2)
		return unknown;
	if (!(off_ns > 0))
		return estimate;
	if (node->rates == 0)
		return none_seen(node, off_ns);
	variance = fmax(squares - rates * rates / bursts, 0) / (bursts - 1);
	estimate.calls = rates / bursts * whiles;
	estimate.error = whiles * (student_limit(CHANCE, bursts - 1) *
					   sqrt(variance / bursts) +
				   COST_VARIES * (double)node->slopes / bursts);
	return estimate.calls * CALL_NS <= off_ns ? estimate : unknown;
}

void estimate_correct_pace(struct estimate *estimate,
			   const struct shim_meta *meta)
{
	double pace = meta->burst_pace, precision = meta->burst_precision;

	if (!estimate->is_known || pace < SHIM_PACE_ONE / 2 ||
	    pace > SHIM_PACE_ONE * 2 || precision < 1)
		return;
	estimate->calls *= SHIM_PACE_ONE / pace;
	estimate->error = hypot(estimate->error * SHIM_PACE_ONE / pace,
				2 * estimate->calls / sqrt(precision));
}

double estimate_path_variance(double calls, double share, uint64_t bursts,
			      uint32_t paths)
{
	double likely;

	if (bursts == 0 || paths < 2)
		return 0;
	/* Twice the deviation is the interval. */
	likely = fmin(NONE_SEEN / 2.0 / (double)bursts, 0.5);
	return calls * calls *
	       fmax(share * (1 - share) / (double)bursts, likely * likely);
}

/* Combines the error that all of a function's calls share with that of each
 * path. */
static double both_errors(double common, double variance)
{
	return sqrt(common * common + 4 * variance);
}

bool path_is_counted(const struct path *path)
{
	return path->calls || path->open || path->older || !path->is_sampled;
}

bool sums_are_counted(const struct sums *sums)
{
	return sums->calls || sums->open || sums->older || !sums->is_sampled;
}

/* Nothing is known about some calls of a bound: the others are as few as their error allows. */
static void find_least(struct count *count)
{
	double least = (double)count->calls - count->error;

	if (count->is_least)
		count->calls = least > (double)count->exact ? (uint64_t)least :
							      count->exact;
}

/* @calls includes @missing. */
static struct count count_of(uint64_t calls, const struct missing *missing)
{
	struct count count = {
		.calls = calls,
		.exact = calls - missing->calls,
		.error = both_errors(missing->error, missing->variance),
		.is_estimate = missing->is_estimate,
		.is_least = missing->is_unknown,
	};

	find_least(&count);
	return count;
}

struct count count_of_path(const struct path *path)
{
	return count_of(path->calls, &path->missing);
}

struct count count_of_sums(const struct sums *sums)
{
	return count_of(sums->calls, &sums->missing);
}

struct count count_of_thread(const struct thread *thread)
{
	return count_of(thread->calls, &thread->missing);
}

struct count count_of_model(const struct model *model)
{
	struct count count = { .calls = model->calls, .exact = model->calls };
	const struct budget *budget = model->budget;

	if (!budget || !budget->functions)
		return count;
	count.exact -= budget->calls.calls - budget->calls.exact;
	count.error = budget->calls.error;
	count.is_estimate = true;
	count.is_least = budget->calls.is_least;
	find_least(&count);
	return count;
}
