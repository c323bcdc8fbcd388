/*
 * Decides when the next sample of a thread is due.
 *
 * Each thread has one timer: of the monotonic clock in mode REAL, of the thread's
 * processor time otherwise.  The kernel checks timers of processor time only at its
 * ticks, mostly 4 ms apart.  For shorter periods there is a second, fine timer of the
 * monotonic clock, which runs while the thread does:
 *
 * 	tick timer:  finds the thread running, starts the fine timer and stops itself
 * 	fine timer:  finds that the thread has slept, starts the tick timer and slows
 * 		     down; finds that the thread has run, and does the opposite
 *
 * Ticks may find a thread late, which shares its processor: if it runs between ticks.  So
 * the fine timer goes on, after twice as long each time.  The timers interrupt a sleep of
 * N periods log2(N) times.
 *
 * A profiler may ask for a greater distance between the signals of the fine timer, since
 * each can cost 20 us on a virtual machine.  Weights are in periods all the same.
 *
 * The weight of a sample is computed from the thread's clock.  A thread that has used
 * little processor time since the last sample may have waited for a processor.  A
 * thread counts as asleep if that happens twice.
 */
#include "sampling/sample_timers.h"

#include "os/random.h"
#include "os/sys.h"
#include "runtime/log.h"

#include <shim/sampling.h>

#include <shim/banned.h>

#define MONOTONIC	   1
#define MONOTONIC_COARSE   6
#define PROCESSOR_TIME	   0 /* of the thread: sys_timer_make */
#define OWN_PROCESSOR_TIME 3 /* of the calling thread */

/* The signals of the timers carry the addresses of these variables as values. */
static char tick_value, fine_value;

static uint64_t period_of(const struct sample_rate *rate)
{
	return 1000000000u / rate->frequency_hz;
}

/* The time between the kernel's ticks; 0 if unknown. */
static uint64_t tick_ns(void)
{
	static uint64_t ns;

	if (ns == 0 && sys_clock_resolution(MONOTONIC_COARSE, &ns) < 0)
		ns = 0;
	return ns;
}

/* The distance between two signals of the fine timer. */
static uint64_t distance_of(const struct sample_rate *rate)
{
	return period_of(rate) * rate->distance;
}

static bool is_fine(const struct sample_rate *rate)
{
	return rate->mode != SHIM_SAMPLE_REAL && period_of(rate) < tick_ns();
}

/* Two threads at a time may get the same.  The data of the thread may be out of reach. */
static uint64_t any_part(uint64_t period_ns)
{
	static uint64_t state;
	uint64_t next = __atomic_load_n(&state, __ATOMIC_RELAXED), part;

	if (next == 0)
		sys_time_ns(MONOTONIC, &next);
	part = random_next(&next) >> 32;
	__atomic_store_n(&state, next, __ATOMIC_RELAXED);
	return 1 + part % period_ns;
}

/*
 * The first sample is due after a random part of a period: otherwise threads and
 * processes that run for less than a period would never be sampled.  Timers of
 * processor time expire only at ticks, and the last tick of a thread comes half a tick
 * before its end on average.  So the sample is due half a tick earlier.
 */
static uint64_t first_tick_ns(uint64_t period_ns)
{
	uint64_t first_ns = any_part(period_ns), tick = tick_ns();

	if (period_ns <= tick || first_ns <= tick / 2)
		return 1;
	return first_ns - tick / 2;
}

static int start_tick_timer(struct thread *thread, uint64_t period_ns)
{
	return sys_timer_set(thread->timer, first_tick_ns(period_ns),
			     period_ns);
}

static int start_fine_timer(struct thread *thread, uint64_t first_ns,
			    const struct sample_rate *rate)
{
	int r = sys_timer_set(thread->fine_timer, first_ns, distance_of(rate));

	thread->is_fine = r == 0;
	thread->was_idle = false;
	thread->sample_distance = rate->distance;
	return r;
}

/* The first sample is due after a random part of the distance and has the weight of all of it:
 * threads that end earlier have none, others have too much. */
static int begin_fine(struct thread *thread, const struct sample_rate *rate)
{
	uint64_t distance_ns = distance_of(rate), now_ns, first_ns;
	int r = sys_thread_time_ns((int)thread->tid, &now_ns);

	if (r < 0)
		return r;
	first_ns = any_part(distance_ns);
	thread->images_ns = 0;
	thread->sample_seen_ns = now_ns;
	thread->sample_counted_ns = now_ns + first_ns - distance_ns;
	return start_fine_timer(thread, first_ns, rate);
}

static int make_timers(struct thread *thread, const struct sample_rate *rate)
{
	int clock = rate->mode == SHIM_SAMPLE_REAL ? MONOTONIC : PROCESSOR_TIME;
	int r = 0;

	if (!thread->has_timer)
		r = sys_timer_make(clock, (int)thread->tid, rate->signal,
				   &tick_value, &thread->timer);
	if (r < 0)
		return r;
	thread->has_timer = true;
	if (!is_fine(rate) || thread->has_fine_timer)
		return 0;
	/* Without the fine timer, samples come at ticks. */
	thread->has_fine_timer = sys_timer_make(MONOTONIC, (int)thread->tid,
						rate->signal, &fine_value,
						&thread->fine_timer) == 0;
	return 0;
}

static void remove_fine_timer(struct thread *thread)
{
	if (!thread->has_fine_timer)
		return;
	thread->has_fine_timer = false;
	thread->is_fine = false;
	sys_timer_delete(thread->fine_timer);
}

/* Without a fine timer, short runs may have no sample. */
static void log_ticks_only(void)
{
	static bool is_logged;

	if (!is_logged)
		log_line("%s",
			 "samples come only at the kernel's ticks: threads "
			 "have no finer timer");
	is_logged = true;
}

static int set_again(struct thread *thread, const struct sample_rate *rate)
{
	uint64_t period_ns = period_of(rate);
	int r;

	if (!is_fine(rate))
		remove_fine_timer(thread);
	if (rate->mode == SHIM_SAMPLE_REAL)
		return sys_timer_set(thread->timer, any_part(period_ns),
				     period_ns);
	if (thread->has_fine_timer && begin_fine(thread, rate) == 0)
		return sys_timer_set(thread->timer, 0, 0);
	remove_fine_timer(thread);
	r = start_tick_timer(thread, period_ns);
	/* The thread has not just ended. */
	if (r == 0 && is_fine(rate))
		log_ticks_only();
	return r;
}

int timers_set(struct thread *thread, const struct sample_rate *rate)
{
	int r = make_timers(thread, rate);

	if (r == 0)
		r = set_again(thread, rate);
	if (r < 0)
		timers_remove(thread);
	return r;
}

void timers_remove(struct thread *thread)
{
	remove_fine_timer(thread);
	if (!thread->has_timer)
		return;
	thread->has_timer = false;
	sys_timer_delete(thread->timer);
}

bool timers_have_sent(const siginfo_t *info)
{
	return info->si_code == SI_TIMER &&
	       (info->si_value.sival_ptr == &tick_value ||
		info->si_value.sival_ptr == &fine_value);
}

/* Sets the fine timer of a thread that sleeps to twice the time. */
static void slow_down(struct thread *self)
{
	self->sleep_ns *= 2;
	sys_timer_set(self->fine_timer, self->sleep_ns, self->sleep_ns);
}

static void change_to_ticks(struct thread *self, const struct sample_rate *rate)
{
	if (start_tick_timer(self, period_of(rate)) < 0)
		return;
	self->is_fine = false;
	self->sleep_ns = distance_of(rate);
	slow_down(self);
}

static void change_to_fine(struct thread *self, const struct sample_rate *rate)
{
	if (start_fine_timer(self, any_part(distance_of(rate)), rate) == 0)
		sys_timer_set(self->timer, 0, 0);
}

static void change_timers(struct thread *self, const struct sample_rate *rate,
			  bool is_idle, bool is_tick)
{
	bool was_fine = self->is_fine, was_idle = self->was_idle;

	self->was_idle = was_fine && is_idle;
	if (was_fine && is_idle && was_idle)
		change_to_ticks(self, rate);
	else if (!was_fine && (is_tick || !is_idle))
		change_to_fine(self, rate);
	else if (!was_fine)
		slow_down(self);
}

uint32_t timers_weigh(struct thread *self, const siginfo_t *info,
		      const struct sample_rate *rate)
{
	uint64_t period_ns = period_of(rate), now_ns, passed_ns;
	int64_t due_ns, weight;

	if (rate->mode == SHIM_SAMPLE_REAL &&
	    sys_time_ns(MONOTONIC, &now_ns) == 0)
		self->sample_seen_ns = now_ns;
	if (!self->has_fine_timer ||
	    sys_time_ns(OWN_PROCESSOR_TIME, &now_ns) < 0)
		return 1 + (uint32_t)info->si_overrun;
	self->sample_counted_ns += self->images_ns;
	self->images_ns = 0;
	passed_ns = now_ns - self->sample_seen_ns;
	self->sample_seen_ns = now_ns;
	change_timers(self, rate, passed_ns < period_ns / 4,
		      info->si_value.sival_ptr == &tick_value);
	/* Rounded: a sample may be a little early or late. */
	due_ns = (int64_t)(now_ns - self->sample_counted_ns + period_ns / 2);
	if (due_ns < (int64_t)period_ns)
		return 0;
	weight = due_ns / (int64_t)period_ns;
	self->sample_counted_ns += (uint64_t)weight * period_ns;
	return (uint32_t)weight;
}

uint64_t timers_leave_out(struct thread *self, const struct sample_rate *rate)
{
	int clock = rate->mode == SHIM_SAMPLE_REAL ? MONOTONIC :
						     OWN_PROCESSOR_TIME;
	uint64_t now_ns, spent_ns;

	if (!self->has_fine_timer && rate->mode != SHIM_SAMPLE_REAL)
		return 0;
	if (sys_time_ns(clock, &now_ns) < 0 || now_ns < self->sample_seen_ns)
		return 0;
	spent_ns = now_ns - self->sample_seen_ns;
	self->sample_counted_ns += spent_ns;
	return spent_ns;
}

/* Programs may have a rhythm of some milliseconds, so great distances are random. */
static uint64_t next_ns(const struct thread *self,
			const struct sample_rate *rate)
{
	uint64_t distance_ns = distance_of(rate);

	if (rate->distance == 1 || self->is_sample_soon)
		return period_of(rate);
	return distance_ns / 2 + any_part(distance_ns);
}

void timers_keep_distance(struct thread *self, const struct sample_rate *rate)
{
	if (!self->is_fine ||
	    (rate->distance == 1 && self->sample_distance == 1))
		return;
	if (sys_timer_set(self->fine_timer, next_ns(self, rate),
			  distance_of(rate)) == 0)
		self->sample_distance = rate->distance;
}
