/* Estimates and their errors, compared with known results. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "model/bounds.h"
#include "model/estimates.h"
#include "text/numbers.h"

#define MS     1e6
#define SECOND 1e9

/* A burst with @rate calls per 1/64 s of processor time. */
static void add_burst(struct shim_throttled_node *node, uint64_t rate)
{
	uint64_t square = rate * rate;

	node->bursts++;
	node->rates += rate;
	node->ns += 1000000;
	node->squares[0] += square;
	node->squares[1] += node->squares[0] < square;
}

Test(estimates, mean_rate_times_the_time_off)
{
	struct shim_throttled_node node = { .bursts = 0 };
	struct estimate estimate;

	/* 90, 100 and 110 a 64th: the mean is 100, the deviation 10. */
	add_burst(&node, 90);
	add_burst(&node, 100);
	add_burst(&node, 110);
	estimate = estimate_calls(&node, 2 * SECOND);
	cr_assert(estimate.is_known);
	cr_assert(ieee_ulp_eq(dbl, estimate.calls, 128 * 100, 4));
	/* Student's t of two degrees of freedom is 4.302653. */
	cr_assert(epsilon_eq(dbl, estimate.error, 128 * 4.302653 * 10 / sqrt(3),
			     0.01));
}

Test(estimates, a_third_of_the_correction_is_an_error_too)
{
	struct shim_throttled_node node = { .bursts = 0 };
	struct estimate estimate;
	int i;

	for (i = 0; i < 50; i++)
		add_burst(&node, 1000);
	node.slopes = 50 * 20;
	estimate = estimate_calls(&node, SECOND);
	cr_assert(epsilon_eq(dbl, estimate.error, 64 * 0.3 * 20, 0.01));
}

Test(estimates, sums_of_squares_have_two_words)
{
	struct shim_throttled_node node = { .bursts = 0 };
	struct estimate estimate;
	int i;

	/* 2000 times 1e8 squared is more than a word has. */
	for (i = 0; i < 2000; i++)
		add_burst(&node, 100000000u);
	cr_assert(node.squares[1] > 0);
	estimate = estimate_calls(&node, SECOND);
	cr_assert(epsilon_eq(dbl, estimate.calls, 64e8, 1));
	cr_assert(estimate.error < 1e-4 * estimate.calls);
}

Test(estimates, less_than_two_bursts_say_nothing)
{
	struct shim_throttled_node node = { .bursts = 0 };

	cr_assert(not(estimate_calls(&node, SECOND).is_known));
	add_burst(&node, 100);
	cr_assert(not(estimate_calls(&node, SECOND).is_known));
	cr_assert(not(estimate_calls(&node, 0).is_known));
	add_burst(&node, 100);
	cr_assert(estimate_calls(&node, 0).is_known);
}

Test(estimates, no_call_in_any_burst_is_a_bound)
{
	struct shim_throttled_node node = { .bursts = 0 };
	struct estimate estimate;
	int i;

	for (i = 0; i < 100; i++)
		add_burst(&node, 0);
	estimate = estimate_calls(&node, SECOND);
	cr_assert(estimate.is_known);
	cr_assert(eq(dbl, estimate.calls, 0));
	/* Three calls in 100 ms at most. */
	cr_assert(epsilon_eq(dbl, estimate.error, 30, 1e-6));
}

Test(estimates, what_cannot_be_is_not_believed)
{
	struct shim_throttled_node node = { .bursts = 2,
					    .rates = UINT64_MAX,
					    .squares = { 0, UINT64_MAX },
					    .slopes = UINT64_MAX };

	cr_assert(not(estimate_calls(&node, SECOND).is_known));
	node.squares[1] = 0; /* less than its mean's square */
	node.rates = 1000;
	cr_assert(estimate_calls(&node, SECOND).error >= 0);
}

/* In 2,000 runs with varying rates, 95 % of the intervals must contain the
 * truth. */
Test(estimates, the_truth_is_in_95_of_100_intervals)
{
	unsigned short random[3] = { 1, 2, 3 };
	int run, i, hits = 0;

	for (run = 0; run < 2000; run++) {
		struct shim_throttled_node node = { .bursts = 0 };
		struct estimate estimate;

		for (i = 0; i < 30; i++)
			add_burst(&node, (uint64_t)(2000 * erand48(random)));
		estimate = estimate_calls(&node, SECOND);
		hits += fabs(estimate.calls - 64 * 999.5) <= estimate.error;
	}
	cr_assert(hits > 1860, "%d of 2000", hits);
	cr_assert(hits < 1940, "%d of 2000", hits);
}

Test(estimates, a_program_that_is_slower_in_bursts_is_called_more_often)
{
	struct shim_meta meta = { .burst_pace = SHIM_PACE_ONE * 3 / 4,
				  .burst_precision = 10000 };
	struct estimate estimate = { 300, 0, true };

	estimate_correct_pace(&estimate, &meta);
	cr_expect(epsilon_eq(dbl, estimate.calls, 400, 1e-9));
	cr_expect(epsilon_eq(dbl, estimate.error, 400 * 2 / 100., 1e-9));
	estimate = (struct estimate){ 300, 30, true };
	meta.burst_precision = UINT16_MAX;
	estimate_correct_pace(&estimate, &meta);
	cr_expect(epsilon_eq(dbl, estimate.error, 40, 0.2));
}

/* No burst has ended, or the file is damaged. */
Test(estimates, an_unknown_pace_changes_nothing)
{
	static const uint16_t paces[][2] = {
		{ 0, 0 },
		{ SHIM_PACE_ONE, 0 },
		{ 1, 1000 },
		{ UINT16_MAX, 1000 },
	};

	for (unsigned i = 0; i < 4; i++) {
		struct shim_meta meta = { .burst_pace = paces[i][0],
					  .burst_precision = paces[i][1] };
		struct estimate estimate = { 300, 30, true };

		estimate_correct_pace(&estimate, &meta);
		cr_expect(eq(dbl, estimate.calls, 300));
		cr_expect(eq(dbl, estimate.error, 30));
	}
}

Test(estimates, a_path_that_has_all_calls_has_no_error_of_its_own)
{
	cr_assert(eq(dbl, estimate_path_variance(1000, 1, 10, 1), 0));
	cr_assert(epsilon_eq(dbl, estimate_path_variance(1000, 0.5, 10, 2),
			     25000, 1e-6));
}

Test(estimates, a_path_that_no_burst_saw_may_have_calls)
{
	/* 3 of 10 bursts are 300 of 1000 calls: twice the deviation. */
	cr_assert(epsilon_eq(dbl, estimate_path_variance(1000, 0, 10, 2),
			     150 * 150, 1e-6));
	cr_assert(epsilon_eq(dbl, estimate_path_variance(1000, 1, 10, 2),
			     150 * 150, 1e-6));
}

Test(bounds, less_than_a_tick_is_less_than_three)
{
	cr_assert(eq(dbl, bound_of(0, 0, 4 * MS, 0), 12 * MS));
	cr_assert(eq(dbl, bound_of(4 * MS, 4 * MS, 4 * MS, 0), 0));
	/* Hooks took some ticks: 100 ms were seen, and 20 ms more are
	 * possible. */
	cr_assert(epsilon_eq(dbl, bound_of(0, 100 * MS, MS, 0), 120 * MS, 1));
	/* The caller's time limits this. */
	cr_assert(eq(dbl, bound_of(0, 100 * MS, MS, 50 * MS), 50 * MS));
	/* Every nanosecond was measured. */
	cr_assert(eq(dbl, bound_of(0, 0, 0, 50 * MS), 0));
	cr_assert(eq(dbl, bound_of(-5, 700, 0, 50 * MS), 700));
}

static const struct {
	struct count count;
	const char *text;
} counts[] = {
	{ { .calls = 65456509 }, "65,456,509" },
	{ { .calls = 65456509, .error = 300000, .is_estimate = true },
	  "~65.5 M \u00b1 0.3 M" },
	{ { .calls = 65456509, .error = 2500, .is_estimate = true },
	  "~65.457 M \u00b1 0.003 M" },
	{ { .calls = 1234, .error = 9.5, .is_estimate = true },
	  "~1234 \u00b1 10" },
	{ { .calls = 1234567890, .error = 6e7, .is_estimate = true },
	  "~1.23 G \u00b1 0.06 G" },
	{ { .calls = 123456, .error = 20000, .is_estimate = true },
	  "~123 k \u00b1 20 k" },
	/* Every estimate is marked, even one with error 0. */
	{ { .calls = 5, .error = 0, .is_estimate = true }, "~5 \u00b1 1" },
	{ { .calls = 9500, .is_estimate = true, .is_least = true }, "> 9,500" },
	{ { .calls = UINT64_MAX, .error = 1e30, .is_estimate = true }, NULL },
};

Test(counts, are_written_as_what_they_are)
{
	char text[COUNT_TEXT];
	size_t i;

	for (i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		const char *got = count_text(text, &counts[i].count);

		if (counts[i].text)
			cr_expect(eq(str, (char *)got, (char *)counts[i].text));
	}
}

/* Some of the calls are not known, and of others there is an estimate. */
Test(counts, are_at_least_what_their_error_leaves)
{
	static const struct {
		double error, variance;
		bool is_unknown;
		uint64_t wanted;
	} cases[] = {
		{ 300, 0, true, 700 }, { 0, 22500, true, 700 },
		{ 900, 0, true, 100 }, { 5000, 0, true, 100 },
		{ 0, 0, true, 1000 },  { 300, 0, false, 1000 },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sums sums = {
			.calls = 1000,
			.missing = { .calls = 900,
				     .error = cases[i].error,
				     .variance = cases[i].variance,
				     .is_estimate = true,
				     .is_unknown = cases[i].is_unknown },
		};
		struct count count = count_of_sums(&sums);

		cr_expect(eq(u64, count.calls, cases[i].wanted), "%zu", i);
		cr_expect(eq(u64, count.exact, 100), "%zu", i);
		cr_expect(eq(int, count.is_least, cases[i].is_unknown), "%zu",
			  i);
	}
}

Test(counts, stand_below_each_other)
{
	struct count_column column = { .width = 5 };
	char text[2 * COUNT_TEXT];
	const char *const wanted[] = { "65,456,509        ",
				       "   ~65.5 M \u00b1 0.3 M" };
	size_t i;

	for (i = 0; i < 2; i++)
		count_column_fit(&column, &counts[i].count);
	for (i = 0; i < 2; i++)
		cr_expect(eq(str,
			     (char *)count_column_text(text, &column,
						       &counts[i].count),
			     (char *)wanted[i]));
	cr_assert(eq(int, count_column(&column, "calls").width, 18));
	cr_assert(eq(str, (char *)count_column(&column, "calls").title,
		     (char *)"     calls        "));
}
