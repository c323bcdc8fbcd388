/*
 * How fast the program runs in bursts.
 *
 * A burst slows the program down by more than its calls take: code that was switched is cold,
 * and the burst is interrupted at its end.  Functions that are counted all the time tell by
 * how much: in a nanosecond of a burst, they are called less often than in one before and
 * after it.  The samples of one thread are enough.
 */
#include "budget/pace.h"

#include <shim/banned.h>

#define FORGET_AFTER 100 /* samples; by then the thread sleeps */
#define RATE_SHIFT   32
#define BURSTS_LEAST 10 /* with calls */
/* Few calls in a burst tell the pace as many do, so fractions of calls are summed up. */
#define CALL_SHIFT 8
/* The pace of programs in general, which was 0.97 in calm runs and 0.9 beside others, and 1 / its
 * variance. */
#define USUAL	      (SHIM_PACE_ONE * 31 / 32)
#define PRIOR	      400
#define PRECISION_MAX UINT16_MAX

/* Calls in bursts, those expected there, and the squares of the differences, in
 * 2^-CALL_SHIFT calls. */
static uint64_t seen, expected, bursts;
static unsigned __int128 squares;

/* The last sample of the thread. */
static const struct tree *tree;
static uint64_t life, weight, changes, counted, end_ns;
static bool is_its_sample, is_rate_known;
/* Between two samples.  The rate is in calls per 2^-RATE_SHIFT ns. */
static uint64_t passed_calls, rate;
/* A burst that waits for the rate after it, if @ns is not 0. */
static struct {
	uint64_t calls, ns, rate_before;
} ended;

void pace_forget(void)
{
	tree = NULL;
	is_its_sample = false;
}

void pace_forked(void)
{
	pace_forget();
	seen = expected = bursts = 0;
	squares = 0;
}

static void add_burst(uint64_t rate_after)
{
	uint64_t calls = ended.calls << CALL_SHIFT;
	uint64_t likely = (ended.rate_before + rate_after) / 2 * ended.ns >>
			  (RATE_SHIFT - CALL_SHIFT);
	uint64_t difference = likely > calls ? likely - calls : calls - likely;

	seen += calls;
	expected += likely;
	squares += (unsigned __int128)difference * difference;
	bursts += calls > 0 || likely > 0;
	ended.ns = 0;
}

/* Whether the sample continues the thread's last one. */
static bool is_next(const struct moment *moment)
{
	return tree == moment->tree && tree->life == life &&
	       changes == controller_changes() && moment->begin > end_ns;
}

void pace_sample(const struct moment *moment, bool is_in_burst)
{
	uint64_t before = counted;
	bool is_known;

	is_its_sample = !tree || tree == moment->tree ||
			moment->weight - weight > FORGET_AFTER;
	if (!is_its_sample)
		return;
	is_known = is_next(moment);
	if (!is_known) {
		is_rate_known = false;
		ended.ns = 0;
	}
	tree = moment->tree;
	life = tree->life;
	weight = moment->weight;
	changes = controller_changes();
	counted = controller_counted_in(tree);
	passed_calls = counted - before;
	if (!is_known || is_in_burst)
		return;
	rate = (passed_calls << RATE_SHIFT) / (moment->begin - end_ns);
	is_rate_known = true;
	if (ended.ns)
		add_burst(rate);
}

/* A rate of 0 is one: bursts only after samples with calls would be expected to have more
 * than they have. */
void pace_burst_ended(uint64_t ns)
{
	if (!is_its_sample || !is_rate_known)
		return;
	ended.calls = passed_calls;
	ended.ns = ns;
	ended.rate_before = rate;
}

void pace_sample_ended(uint64_t now_ns)
{
	if (is_its_sample)
		end_ns = now_ns;
}

void pace_publish(struct shim_meta *meta)
{
	unsigned __int128 precision = (unsigned __int128)expected * expected /
				      (squares ? squares : 1);
	uint64_t known = precision > PRECISION_MAX ? PRECISION_MAX :
						     (uint64_t)precision;
	uint64_t pace;

	if (bursts < BURSTS_LEAST)
		known = 0;
	pace = expected ? seen * SHIM_PACE_ONE / expected : 0;
	if (pace > 2 * SHIM_PACE_ONE)
		pace = 2 * SHIM_PACE_ONE;
	pace = (pace * known + USUAL * PRIOR) / (known + PRIOR);
	if (pace < SHIM_PACE_ONE / 2)
		pace = SHIM_PACE_ONE / 2;
	meta->burst_pace = (uint16_t)pace;
	meta->burst_precision = (uint16_t)(known + PRIOR > PRECISION_MAX ?
						   PRECISION_MAX :
						   known + PRIOR);
}
