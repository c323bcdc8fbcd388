/*
 * The pace of the program in bursts: the test has the threads, their processor time and the
 * calls that are counted all the time.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "../../hooks/budget/pace.c"

#define MS	   1000000ull
#define HANDLER_NS 250000 /* the work of a sample */

/* --- what it needs of the controller --- */

struct thread {
	struct tree tree; /* the first, so its address is the thread's */
	uint64_t calls, now_ns;
};

static uint64_t changes_now;

uint64_t controller_counted_in(const struct tree *of)
{
	return ((const struct thread *)of)->calls;
}

uint64_t controller_changes(void)
{
	return changes_now;
}

/* --- the run --- */

static struct thread thread = { .tree.life = 1 }, other = { .tree.life = 2 };
static struct shim_meta meta;
static uint64_t samples;

/* A sample of the thread, which has worked for @ns and made @calls calls since its last. */
static void sample(struct thread *of, uint64_t calls, uint64_t ns,
		   bool is_in_burst)
{
	struct moment moment = { .tree = &of->tree, .weight = ++samples };

	of->calls += calls;
	of->now_ns += ns;
	moment.begin = of->now_ns;
	pace_sample(&moment, is_in_burst);
	if (is_in_burst)
		pace_burst_ended(ns);
	of->now_ns += HANDLER_NS;
	pace_sample_ended(of->now_ns);
}

static void outside(uint64_t calls)
{
	sample(&thread, calls, MS, false);
}

static void inside(uint64_t calls)
{
	sample(&thread, calls, MS, true);
}

/* Bursts with @calls calls, where the program makes 1000 without a burst. */
static void run(unsigned count, uint64_t calls)
{
	outside(1000);
	outside(1000); /* the first tells no rate */
	for (unsigned i = 0; i < count; i++) {
		inside(calls);
		outside(1000);
	}
}

/* In percent. */
static double pace(void)
{
	pace_publish(&meta);
	return meta.burst_pace * 100.0 / SHIM_PACE_ONE;
}

static uint64_t precision(void)
{
	pace_publish(&meta);
	return meta.burst_precision;
}

static void expect_pace(double wanted)
{
	cr_expect(gt(dbl, pace(), wanted - 1));
	cr_expect(lt(dbl, pace(), wanted + 1));
}

static void expect_unknown(void)
{
	cr_expect(eq(dbl, pace(), USUAL * 100.0 / SHIM_PACE_ONE));
	cr_expect(eq(u64, precision(), PRIOR));
}

/* --- the pace --- */

Test(pace, it_is_the_share_of_the_calls_before_and_after_a_burst)
{
	static const uint64_t calls[] = { 600, 750, 900, 1000, 1100 };

	for (unsigned i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		pace_forked();
		run(5000, calls[i]);
		expect_pace((double)calls[i] / 10);
	}
}

Test(pace, it_does_not_depend_on_the_distances_of_samples)
{
	for (unsigned i = 0; i < 5000; i++) {
		outside(1000);
		sample(&thread, 375, MS / 2, true);
		sample(&thread, 4000, MS * 4, false);
		sample(&thread, 3000, MS * 4, true);
	}
	expect_pace(75);
}

/* 1125 is three quarters of the mean. */
Test(pace, calls_that_get_more_or_fewer_meanwhile_have_the_mean_of_both_sides)
{
	for (unsigned i = 0; i < 5000; i++) {
		outside(1000);
		inside(1125);
		outside(2000);
	}
	expect_pace(75);
	pace_forked();
	for (unsigned i = 0; i < 5000; i++) {
		outside(2000);
		inside(1125);
		outside(1000);
	}
	expect_pace(75);
}

Test(pace, few_calls_in_a_sample_tell_the_same)
{
	for (uint64_t calls = 1; calls < 20; calls++) {
		pace_forked();
		for (unsigned i = 0; i < 5000; i++) {
			outside(calls);
			inside(calls);
		}
		expect_pace(100);
	}
}

/* The samples with calls are not the same ones in each turn. */
Test(pace, calls_that_are_missing_in_most_samples_tell_the_same)
{
	unsigned turn = 0;

	for (unsigned i = 0; i < 30000; i++) {
		outside(turn++ % 7 == 0 ? 1000 : 0);
		inside(turn++ % 7 == 0 ? 1000 : 0);
		outside(turn++ % 7 == 0 ? 1000 : 0);
	}
	expect_pace(100);
}

/* --- its precision --- */

Test(pace, it_is_unknown_without_bursts)
{
	expect_unknown();
	run(0, 0);
	expect_unknown();
}

Test(pace, it_is_unknown_with_few_bursts)
{
	run(BURSTS_LEAST - 1, 500);
	expect_unknown();
	inside(500);
	outside(1000);
	cr_expect(lt(dbl, pace(), 96));
	cr_expect(gt(u64, precision(), PRIOR));
}

Test(pace, bursts_among_no_calls_do_not_count)
{
	run(0, 0);
	for (unsigned i = 0; i < 100; i++) {
		outside(0);
		inside(0);
		outside(0);
	}
	run(BURSTS_LEAST - 2, 500);
	expect_unknown();
}

/* The calls of a burst vary by a half, those of 100 bursts by a twentieth. */
Test(pace, scattered_bursts_tell_less_than_even_ones)
{
	run(100, 1000);
	cr_expect(eq(u64, precision(), PRECISION_MAX));
	pace_forked();
	outside(1000);
	for (unsigned i = 0; i < 100; i++) {
		inside(i % 2 ? 500 : 1500);
		outside(1000);
	}
	cr_expect(gt(u64, precision(), PRIOR + 395));
	cr_expect(lt(u64, precision(), PRIOR + 405));
}

/* The length has no fraction in the units of rates. */
Test(pace, bursts_without_any_scatter_tell_most)
{
	for (unsigned i = 0; i < 5000; i++) {
		sample(&thread, 1024, 1 << 20, false);
		sample(&thread, 1024, 1 << 20, true);
	}
	cr_expect(zero(u64, (uint64_t)squares));
	expect_pace(100);
	cr_expect(eq(u64, precision(), PRECISION_MAX));
}

/* --- what is dropped --- */

/* The other thread's calls and bursts are none of this one's. */
static void disturb(void)
{
	sample(&other, 77777, 3 * MS, false);
	sample(&other, 5, MS / 3, true);
	sample(&other, 0, MS, false);
}

Test(pace, samples_of_other_threads_do_not_disturb)
{
	other.now_ns = 1000 * MS;
	run(0, 0);
	for (unsigned i = 0; i < 5000; i++) {
		disturb();
		inside(750);
		disturb();
		outside(1000);
	}
	expect_pace(75);
	cr_expect(eq(u64, bursts, 5000));
}

static void sleep_for(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		sample(&other, 1000, MS, false);
}

Test(pace, a_thread_that_sleeps_for_a_while_is_waited_for)
{
	run(0, 0);
	sleep_for(FORGET_AFTER);
	inside(750);
	sleep_for(FORGET_AFTER);
	outside(1000);
	cr_expect(eq(u64, bursts, 1));
}

Test(pace, a_thread_that_sleeps_for_longer_is_given_up_for_another)
{
	run(0, 0);
	inside(750);
	sleep_for(FORGET_AFTER + 1);
	sample(&other, 1000, MS, false);
	cr_expect(zero(u64, bursts));
	outside(1000);
	inside(750);
	outside(1000);
	cr_expect(zero(u64, bursts));
	sample(&other, 750, MS, true);
	sample(&other, 1000, MS, false);
	cr_expect(eq(u64, bursts, 1));
	cr_expect(eq(u64, ended.calls, 750));
}

/* @drop makes what was known before worthless: a burst that waits, and a rate. */
static void expect_dropped(void (*drop)(void))
{
	run(0, 0);
	inside(750);
	drop();
	outside(1000);
	outside(1000);
	cr_expect(zero(u64, bursts));
	drop();
	outside(1000);
	inside(750); /* with no rate before */
	outside(1000);
	cr_expect(zero(u64, bursts));
	drop();
	inside(750);
	outside(1000);
	cr_expect(zero(u64, bursts));
	inside(750);
	outside(1000);
	cr_expect(eq(u64, bursts, 1));
	cr_expect(eq(u64, ended.calls, 750));
}

static void change_what_is_counted(void)
{
	changes_now++;
	thread.calls = 0;
}

Test(pace, a_change_of_what_is_counted_drops_what_is_known)
{
	expect_dropped(change_what_is_counted);
}

static void reuse_tree(void)
{
	thread.tree.life++;
	thread.calls = 50;
}

Test(pace, another_life_of_the_tree_drops_what_is_known)
{
	expect_dropped(reuse_tree);
}

Test(pace, forget_drops_what_is_known_of_the_thread)
{
	expect_dropped(pace_forget);
	run(BURSTS_LEAST * 2, 750);
	pace_forget();
	cr_expect(lt(dbl, pace(), 99));
}

static void set_clock_back(void)
{
	thread.now_ns -= 3 * MS;
}

Test(pace, a_clock_that_goes_back_drops_what_is_known)
{
	thread.now_ns = 1000 * MS;
	expect_dropped(set_clock_back);
}

/* bursts.c forgets in the sample of the other thread. */
Test(pace, forget_in_a_sample_lasts_beyond_its_end)
{
	struct moment moment = { .tree = &other.tree };

	run(0, 0);
	moment.weight = samples += FORGET_AFTER + 1;
	moment.begin = MS;
	pace_sample(&moment, false);
	pace_forget();
	pace_sample_ended(2 * MS);
	cr_expect(tree == NULL);
	run(1, 750);
	cr_expect(eq(u64, bursts, 1));
}

Test(pace, a_child_knows_nothing)
{
	run(100, 750);
	inside(750);
	pace_forked();
	expect_unknown();
	outside(1000);
	outside(1000);
	cr_expect(zero(u64, bursts));
	run(100, 1000);
	cr_expect(eq(u64, precision(), PRECISION_MAX));
}

/* --- absurd input --- */

static void expect_range(void)
{
	pace_publish(&meta);
	cr_assert(ge(u32, meta.burst_pace, SHIM_PACE_ONE / 2));
	cr_assert(le(u32, meta.burst_pace, 2 * SHIM_PACE_ONE));
	cr_assert(ge(u32, meta.burst_precision, PRIOR));
}

Test(pace, it_stays_within_its_range)
{
	run(1000, 0);
	cr_expect(eq(dbl, pace(), 50));
	pace_forked();
	run(1000, 2000000);
	cr_expect(le(dbl, pace(), 200));
	expect_range();
}

Test(pace, absurd_counts_and_times_leave_it_within_its_range)
{
	static const uint64_t calls[] = { 0,	      1,	  1000,
					  1ull << 44, 1ull << 60, UINT64_MAX };
	static const uint64_t times[] = { 0, 1, MS, 1ull << 40, 1ull << 63 };
	const unsigned n = sizeof(calls) / sizeof(*calls);
	const unsigned m = sizeof(times) / sizeof(*times);

	for (unsigned i = 0; i < n * n * m * m; i++) {
		uint64_t before = calls[i % n], in = calls[i / n % n];
		uint64_t before_ns = times[i / n / n % m];
		uint64_t in_ns = times[i / n / n / m];

		if (i % 2)
			pace_forked();
		for (unsigned j = 0; j < 2 * BURSTS_LEAST; j++) {
			sample(&thread, before, before_ns, false);
			sample(&thread, in, in_ns, true);
		}
		expect_range();
	}
}
