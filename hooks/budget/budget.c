/*
 * The budget: its start, and what happens at a sample.
 */
#define _GNU_SOURCE
#include "budget/budget.h"

#include "budget/sampled.h"
#include "path/path.h"
#include "path/calls.h"
#include "path/needs.h"

#include <shim/sampling.h>
#include <ucontext.h>

#include <shim/banned.h>

#define FREQUENCY_HZ 1000

static struct shim_profiler_handle *handle;
static uint32_t budget_percent;
static bool is_on;

/* --- the own cost --- */

static uint64_t ns_of(const struct shim_meta *meta, uint64_t clock)
{
	uint64_t hz = meta->clock_hz;

	if (hz == 0 || clock > UINT64_MAX / 1000000000u)
		return 0; /* not known */
	return clock * 1000000000u / hz;
}

static void add(uint64_t *total, uint64_t value)
{
	__atomic_fetch_add(total, value, __ATOMIC_RELAXED);
}

/* --- a sample --- */

static uintptr_t sp_of(const void *context)
{
#ifdef __x86_64__
	return (uintptr_t)((const ucontext_t *)context)
		->uc_mcontext.gregs[REG_RSP];
#else
	(void)context;
	return 0;
#endif
}

static void on_sample_hit(struct shim_profiler *profiler, uintptr_t ip,
			  const void *context, uint32_t weight)
{
	struct shim_meta *meta = shim_record_meta();
	bool has_clock = !tree_hot.no_clock;
	uint64_t begin;

	(void)profiler, (void)ip;
	if (!is_on || !meta)
		return;
	begin = has_clock ? shim_clock_read() : 0;
	add(&meta->sample_weight, weight);
	budget_samples_add(context, sp_of(context), weight);
	if (has_clock)
		add(&meta->own_ns, ns_of(meta, shim_clock_read() - begin));
}

/* --- start --- */

static void describe(void)
{
	struct shim_meta *meta = shim_record_meta();

	if (!meta)
		return;
	meta->budget = is_on ? budget_percent * 100 : 0;
	meta->sample_period_ns = is_on ? 1000000000u / FREQUENCY_HZ : 0;
}

/* The child has a recording of its own. */
static void forked(void)
{
	describe();
}

bool budget_start(uint32_t percent)
{
	static const struct path_client client = {
		.forked = forked,
		.image_gone = budget_samples_image_gone,
	};

	handle = shim_profiler_create(NULL);
	if (!handle || shim_profiler_enable_sampling(handle) != SHIM_OK ||
	    shim_profiler_get_sample_mode(handle, NULL, NULL) != SHIM_OK) {
		shim_record_log("calltree: no budget: its samples cannot be "
				"taken here, or another profiler takes some; "
				"all calls are recorded");
		return false;
	}
	budget_percent = percent;
	budget_samples_start();
	tree_need_look_back();
	path_add_client(&client);
	shim_profiler_on_sample_hit(handle, on_sample_hit);
	return true;
}

void budget_begin(void)
{
	if (budget_percent == 0)
		return;
	if (tree_mode != COUNTS || tree_is_traced) {
		shim_record_log("calltree: no budget beside profilers that "
				"need the time of each call");
		return;
	}
	is_on = shim_profiler_set_sample_mode(handle, SHIM_SAMPLE_PROCESS,
					      FREQUENCY_HZ) == SHIM_OK;
	if (!is_on)
		shim_record_log("calltree: no budget: the main thread gets no "
				"timer; all calls are recorded");
	describe();
}
