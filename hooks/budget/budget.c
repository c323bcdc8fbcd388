/* The budget: its start, and its work at each sample. */
#include "budget/budget.h"

#include "budget/controller.h"
#include "budget/pace.h"
#include "budget/sampled.h"
#include "path/path.h"
#include "path/calls.h"
#include "path/needs.h"

#include <shim/builtin.h>
#include <shim/sampling.h>

#include <shim/banned.h>

/* The first samples are as dense as the timers allow: a second tells much.  Later, each signal
 * stands for DISTANCE of them, which keeps the cost of long runs low. */
#define FREQUENCY_HZ 1000
#define DENSE_FIRST  1000
#define DISTANCE     4

static struct shim_profiler_handle *handle;
static bool is_on;

/* --- a sample --- */

/* Not 0: a thread is deciding, or is switching functions. */
static uint32_t is_busy;

/* Not 0: nothing was recorded for a while. */
static uint32_t was_away;

static bool take_control(void)
{
	return __atomic_exchange_n(&is_busy, 1, __ATOMIC_ACQUIRE) == 0;
}

static void control(struct tree *tree, struct shim_meta *meta, uint64_t begin)
{
	struct moment moment = {
		.tree = tree,
		.meta = meta,
		.weight = meta->sample_weight,
		.hooks = budget_samples_hooks,
		.counters = budget_samples_counters,
		.begin = begin,
	};

	if (__atomic_exchange_n(&was_away, 0, __ATOMIC_ACQUIRE))
		bursts_forget();
	throttled_settle();
	throttled_follow_filters();
	controller_look(&moment);
	bursts_step(&moment);
}

static void end_control(uint64_t now_ns)
{
	pace_sample_ended(now_ns);
	__atomic_store_n(&is_busy, 0, __ATOMIC_RELEASE);
}

/* A burst lasts until the next sample.  Whether a sample comes soon must not depend on what the
 * last one has found: its weight is that of the time since then. */
static void plan_next_sample(const struct tree *tree, uint64_t weight)
{
	shim_samples_set_distance(weight < DENSE_FIRST ? 1 : DISTANCE);
	if (tree && bursts_tree() == tree)
		shim_sample_soon();
}

static void on_sample_hit(struct shim_profiler *profiler, uintptr_t ip,
			  const void *context, uint32_t weight)
{
	struct shim_meta *meta = shim_record_meta();
	struct tree *tree;
	uint64_t begin, end;
	bool has_control;

	(void)profiler, (void)ip;
	if (!is_on || !meta || tree_hot.no_clock)
		return;
	begin = shim_thread_time_ns();
	__atomic_fetch_add(&meta->sample_weight, weight, __ATOMIC_RELAXED);
	tree = budget_samples_add(context, weight);
	has_control = tree && !tree_hot.shared && take_control();
	if (has_control)
		control(tree, meta, begin);
	plan_next_sample(tree, meta->sample_weight);
	end = shim_thread_time_ns();
	if (has_control)
		end_control(end);
	__atomic_fetch_add(&meta->own_ns, end - begin, __ATOMIC_RELAXED);
}

/* --- start --- */

static void describe(void)
{
	struct shim_meta *meta = shim_record_meta();

	if (!meta)
		return;
	meta->budget = is_on ? controller_percent * 100 : 0;
	meta->sample_period_ns = is_on ? 1000000000u / FREQUENCY_HZ : 0;
}

/* The child has its own recording, in which the same functions are off. */
static void forked(void)
{
	is_busy = 0;
	shim_samples_set_distance(1);
	bursts_forked();
	controller_forked();
	describe();
}

static bool take_samples(bool takes)
{
	return shim_profiler_set_sample_mode(
		       handle, takes ? SHIM_SAMPLE_PROCESS : SHIM_SAMPLE_NONE,
		       FREQUENCY_HZ) == SHIM_OK;
}

/* Time without calls belongs to none. */
static void recorded(bool records)
{
	if (!is_on)
		return;
	__atomic_store_n(&was_away, 1, __ATOMIC_RELEASE);
	if (!take_samples(records))
		shim_record_log("calltree: the samples of the budget cannot be "
				"stopped or begun again");
}

static void image_gone(uintptr_t low, uintptr_t high, uint32_t generation)
{
	budget_samples_image_gone(low, high, generation);
	controller_image_gone(low, high);
}

bool budget_start(uint32_t percent)
{
	static const struct path_client client = {
		.forked = forked,
		.recorded = recorded,
		.image_gone = image_gone,
	};

	handle = shim_profiler_create(NULL);
	if (!handle || shim_profiler_enable_sampling(handle) != SHIM_OK ||
	    shim_profiler_get_sample_mode(handle, NULL, NULL) != SHIM_OK) {
		shim_record_log(
			"calltree: no budget: its samples cannot be "
			"taken here, or another profiler uses the sampler; "
			"all calls are recorded");
		return false;
	}
	controller_percent = percent;
	budget_samples_start();
	tree_need_look_back();
	path_add_client(&client);
	shim_profiler_on_sample_hit(handle, on_sample_hit);
	return true;
}

static void change(uint32_t percent)
{
	controller_percent = percent;
	describe();
	shim_record_log("calltree: the budget was changed (profrun ctl)");
}

void budget_begin(void)
{
	const char *why = tree_refuses_budget();

	if (controller_percent == 0)
		return;
	if (why) {
		shim_record_log(why);
		return;
	}
	is_on = take_samples(true);
	if (is_on) {
		tree_begin_budget();
		shim_budget_on_change(change);
	} else {
		shim_record_log("calltree: no budget: the main thread gets no "
				"timer; all calls are recorded");
	}
	describe();
}
