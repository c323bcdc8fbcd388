/*
 * The timers of a thread that runs and sleeps: the test is the kernel, whose ticks are 4 ms
 * apart.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "sampling/sample_timers.c"

#define MS 1000000ull

/* --- the system --- */

enum {
	TICK = 1,
	FINE = 2,
	BOTH = 3,
};

static struct {
	bool is_made;
	int clock;
	void *value;
	uint64_t first_ns, period_ns;
} timers[BOTH];

static uint64_t now_ns; /* of the thread's processor time */
static int fails;	/* make, or set: these timers */
static int unset;
static unsigned logged;

int sys_timer_make(int clock, int tid, int signal, void *value, int *timer)
{
	*timer = value == &tick_value ? TICK : FINE;
	cr_expect(eq(int, tid, 77));
	cr_expect(eq(int, signal, 27));
	if (fails & *timer)
		return -EAGAIN;
	cr_expect(not(timers[*timer].is_made));
	timers[*timer].is_made = true;
	timers[*timer].clock = clock;
	timers[*timer].value = value;
	timers[*timer].period_ns = 0;
	return 0;
}

int sys_timer_set(int timer, uint64_t first_ns, uint64_t period_ns)
{
	cr_expect(timers[timer].is_made);
	cr_expect(eq(int, first_ns == 0, period_ns == 0));
	if (unset & timer)
		return -EINVAL;
	timers[timer].first_ns = first_ns;
	timers[timer].period_ns = period_ns;
	return 0;
}

int sys_timer_delete(int timer)
{
	cr_expect(timers[timer].is_made);
	timers[timer].is_made = false;
	timers[timer].period_ns = 0;
	return 0;
}

int sys_thread_time_ns(int tid, uint64_t *time_ns)
{
	cr_expect(eq(int, tid, 77));
	*time_ns = now_ns;
	return 0;
}

int sys_time_ns(int clock, uint64_t *time_ns)
{
	(void)clock;
	*time_ns = now_ns;
	return 0;
}

int sys_clock_resolution(int clock, uint64_t *resolution_ns)
{
	cr_expect(eq(int, clock, MONOTONIC_COARSE));
	*resolution_ns = 4 * MS;
	return 0;
}

void log_line(const char *format, ...)
{
	(void)format;
	logged++;
}

/* --- a thread --- */

static struct thread self = { .tid = 77 };
static struct sample_rate rate = { SHIM_SAMPLE_PROCESS, 1000, 27, 1 };

static void set_timers(void)
{
	now_ns = 100 * MS;
	cr_assert(zero(int, timers_set(&self, &rate)));
}

/* The weight of a sample of @timer, after @ns of the thread's time. */
static uint32_t expire(int timer, uint64_t ns)
{
	siginfo_t info = { .si_code = SI_TIMER };

	info.si_value.sival_ptr = timers[timer].value;
	now_ns += ns;
	cr_expect(timers_have_sent(&info));
	return timers_weigh(&self, &info, &rate);
}

static void expect_periods(uint64_t tick_ns_wanted, uint64_t fine_ns)
{
	cr_expect(eq(u64, timers[TICK].period_ns, tick_ns_wanted));
	cr_expect(eq(u64, timers[FINE].period_ns, fine_ns));
}

Test(sample_timers, the_fine_timer_is_on_while_the_thread_runs)
{
	uint32_t weight = 0;

	set_timers();
	cr_expect(eq(int, timers[TICK].clock, PROCESSOR_TIME));
	cr_expect(eq(int, timers[FINE].clock, MONOTONIC));
	expect_periods(0, MS);
	for (unsigned i = 0; i < 100; i++) {
		weight += expire(FINE, MS);
		expect_periods(0, MS);
	}
	cr_expect(ge(u32, weight, 99));
	cr_expect(le(u32, weight, 100));
	/* A thread that waits for a processor once does not sleep. */
	expire(FINE, MS / 5);
	expect_periods(0, MS);
	expire(FINE, MS / 4);
	expire(FINE, MS / 5);
	expect_periods(0, MS);
	cr_expect(zero(u32, logged));
}

static void fall_asleep(void)
{
	expire(FINE, 0);
	expire(FINE, 0);
}

Test(sample_timers,
     the_fine_timer_takes_twice_as_long_at_each_signal_of_a_sleep)
{
	set_timers();
	for (unsigned i = 0; i < 3; i++) {
		fall_asleep();
		for (uint64_t ns = 2 * MS; ns < 100 * MS; ns *= 2) {
			expect_periods(MS, ns);
			cr_expect(eq(u64, timers[FINE].first_ns, ns));
			cr_expect(zero(u32, expire(FINE, 0)));
		}
		/* It runs again. */
		if (i == 0)
			expire(TICK, 0);
		else
			expire(FINE, MS);
		expect_periods(0, MS);
	}
}

Test(sample_timers, a_timer_that_cannot_be_set_leaves_the_other_on)
{
	set_timers();
	unset = TICK;
	fall_asleep();
	expect_periods(0, MS);
	unset = 0;
	expire(FINE, 0);
	expect_periods(MS, 2 * MS);
	unset = FINE;
	expire(TICK, MS);
	expect_periods(MS, 2 * MS);
	unset = 0;
	expire(TICK, MS);
	expect_periods(0, MS);
}

Test(sample_timers, without_a_fine_timer_samples_come_at_ticks)
{
	fails = FINE;
	for (unsigned i = 0; i < 2; i++) {
		set_timers();
		cr_expect(not(timers[FINE].is_made));
		expect_periods(MS, 0);
		cr_expect(eq(u32, logged, 1));
		cr_expect(eq(u32, expire(TICK, 4 * MS), 1));
	}
	fails = 0;
	set_timers();
	expect_periods(0, MS);
	unset = FINE;
	set_timers();
	cr_expect(not(timers[FINE].is_made));
	expect_periods(MS, 0);
	unset = 0;
	timers_remove(&self);
	cr_expect(not(timers[TICK].is_made));
}

Test(sample_timers, a_thread_without_a_timer_of_ticks_has_none)
{
	fails = TICK;
	cr_expect(eq(int, timers_set(&self, &rate), -EAGAIN));
	fails = 0;
	unset = BOTH;
	cr_expect(eq(int, timers_set(&self, &rate), -EINVAL));
	cr_expect(not(timers[TICK].is_made || timers[FINE].is_made));
}

/* Only periods below 4 ms need it. */
Test(sample_timers, other_rates_have_no_fine_timer)
{
	static const struct sample_rate rates[] = {
		{ SHIM_SAMPLE_PROCESS, 250, 27, 1 },
		{ SHIM_SAMPLE_REAL, 1000, 27, 1 },
	};

	for (unsigned i = 0; i < 2; i++) {
		timers_remove(&self);
		set_timers();
		cr_expect(timers[FINE].is_made);
		timers_remove(&self);
		cr_assert(zero(int, timers_set(&self, &rates[i])));
		cr_expect(not(timers[FINE].is_made));
		expect_periods(i ? MS : 4 * MS, 0);
		cr_expect(eq(int, timers[TICK].clock,
			     i ? MONOTONIC : PROCESSOR_TIME));
	}
	timers_remove(&self);
	set_timers();
	cr_assert(zero(int, timers_set(&self, &rates[0])));
	cr_expect(not(timers[FINE].is_made));
	cr_expect(zero(u32, logged));
}

Test(sample_timers, the_time_of_callbacks_has_no_weight)
{
	set_timers();
	expire(FINE, 2 * MS);
	now_ns += 50 * MS;
	cr_expect(eq(u64, timers_leave_out(&self, &rate), 50 * MS));
	cr_expect(le(u32, expire(FINE, MS), 1));
}

static struct sample_rate rare = { SHIM_SAMPLE_PROCESS, 1000, 27, 4 };

/* The weight of a signal of the fine timer, whose distance is kept then. */
static uint32_t expire_rare(uint64_t ns)
{
	siginfo_t info = { .si_code = SI_TIMER };
	uint32_t weight;

	info.si_value.sival_ptr = timers[FINE].value;
	now_ns += ns;
	weight = timers_weigh(&self, &info, &rare);
	timers_keep_distance(&self, &rare);
	return weight;
}

Test(sample_timers,
     rare_signals_have_random_distances_and_the_weight_of_all_periods)
{
	uint64_t weight = 0, sum_ns = 0, least = UINT64_MAX, most = 0;

	set_timers();
	timers_keep_distance(&self, &rate);
	expect_periods(0, MS);
	cr_expect(le(u32, expire_rare(MS), 1));
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t first_ns = timers[FINE].first_ns;

		expect_periods(0, 4 * MS);
		cr_expect(gt(u64, first_ns, 2 * MS));
		cr_expect(le(u64, first_ns, 6 * MS));
		least = first_ns < least ? first_ns : least;
		most = first_ns > most ? first_ns : most;
		sum_ns += first_ns;
		weight += expire_rare(first_ns);
	}
	cr_expect(ge(u64, weight * MS, sum_ns - MS));
	cr_expect(le(u64, weight * MS, sum_ns + MS));
	cr_expect(lt(u64, least, 2 * MS + MS / 10));
	cr_expect(gt(u64, most, 6 * MS - MS / 10));
	cr_expect(gt(u64, sum_ns, 3900 * MS));
	cr_expect(lt(u64, sum_ns, 4100 * MS));
	/* It is dense again. */
	timers_keep_distance(&self, &rate);
	expect_periods(0, MS);
}

Test(sample_timers, a_sample_that_is_wanted_soon_comes_after_one_period)
{
	set_timers();
	self.is_sample_soon = true;
	timers[FINE].first_ns = 0;
	timers_keep_distance(&self, &rate);
	cr_expect(zero(u64, timers[FINE].first_ns));
	for (unsigned i = 0; i < 3; i++) {
		self.is_sample_soon = true;
		expire_rare(4 * MS);
		cr_expect(eq(u64, timers[FINE].first_ns, MS));
		expect_periods(0, 4 * MS);
		self.is_sample_soon = false;
		expire_rare(MS);
		cr_expect(gt(u64, timers[FINE].first_ns, 2 * MS));
	}
}

/* It must not get less time than other threads, however short it is. */
Test(sample_timers, a_new_thread_has_the_time_that_it_runs)
{
	for (uint64_t life = 1; life < 12; life += 2) {
		uint64_t weight = 0;

		for (unsigned i = 0; i < 4000; i++) {
			uint64_t end_ns;

			timers_remove(&self);
			now_ns = 100 * MS;
			cr_assert(zero(int, timers_set(&self, &rare)));
			end_ns = now_ns + life * MS;
			while (now_ns + timers[FINE].first_ns <= end_ns)
				weight += expire_rare(timers[FINE].first_ns);
		}
		cr_expect(gt(u64, weight, life * 4000 * 93 / 100));
		cr_expect(lt(u64, weight, life * 4000 * 107 / 100));
	}
}

Test(sample_timers, a_distance_that_cannot_be_set_is_tried_again)
{
	set_timers();
	unset = FINE;
	timers_keep_distance(&self, &rare);
	expect_periods(0, MS);
	unset = 0;
	timers_keep_distance(&self, &rare);
	expect_periods(0, 4 * MS);
}

Test(sample_timers, rare_signals_of_a_thread_that_sleeps_get_rarer_still)
{
	set_timers();
	expire_rare(MS);
	expire_rare(0);
	expire_rare(0);
	expect_periods(MS, 8 * MS);
	timers_keep_distance(&self, &rate);
	expect_periods(MS, 8 * MS);
	/* A tick finds it running. */
	expire(TICK, MS);
	expect_periods(0, MS);
}
