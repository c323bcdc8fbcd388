/*
 * The cost of hooks depends on the code around them.  A constant that was measured in a
 * loop is wrong by some nanoseconds per call, and exact hooks may take more time than
 * the program. So the processor time is sampled, and each sample counts for the
 * innermost recorded call: as time of the program, or as time of shim.  Samples have no
 * stacks, and cost 0.1 to 0.4 % of the time.
 */
#include "budget/calibrate.h"

#include "budget/sampled.h"
#include "path/calls.h"
#include "path/path.h"

#include <shim/builtin.h>
#include <shim/record.h>
#include <shim/sampling.h>

#include <shim/banned.h>

#define FREQUENCY_HZ 1000

static struct shim_profiler_handle *handle;
static bool is_on;

static void describe(void)
{
	struct shim_meta *meta = shim_record_meta();

	if (meta)
		meta->sample_period_ns = is_on ? 1000000000u / FREQUENCY_HZ : 0;
}

static void on_sample_hit(struct shim_profiler *profiler, uintptr_t ip,
			  const void *context, uint32_t weight)
{
	struct shim_meta *meta = shim_record_meta();

	(void)profiler;
	if (!is_on || !meta)
		return;
	__atomic_fetch_add(&meta->sample_weight, weight, __ATOMIC_RELAXED);
	budget_samples_add_place(context, ip, weight);
}

/* Called when a profiler takes the sampler for other samples.  The samples so far are
 * from one part of the run only. */
static void sampler_taken(void)
{
	is_on = false;
	describe();
	shim_record_log(
		"calltree: no calibrate: another profiler uses the sampler");
}

static bool has_sampler(void)
{
	handle = shim_profiler_create(NULL);
	return handle && shim_profiler_enable_sampling(handle) == SHIM_OK &&
	       shim_profiler_get_sample_mode(handle, NULL, NULL) == SHIM_OK;
}

void calibrate_begin(void)
{
	static const struct path_client client = {
		.forked = describe,
		.image_gone = budget_samples_image_gone,
	};

	if (handle)
		return;
	if (tree_mode != EXACT || tree_is_traced || !has_sampler()) {
		shim_record_log(
			"calltree: no calibrate: its samples cannot be "
			"taken here, or another profiler uses the sampler");
		return;
	}
	shim_lend_samples(handle, sampler_taken);
	budget_samples_start();
	path_add_client(&client);
	shim_profiler_on_sample_hit(handle, on_sample_hit);
	is_on = shim_profiler_set_sample_mode(handle, SHIM_SAMPLE_PROCESS,
					      FREQUENCY_HZ) == SHIM_OK;
	describe();
}
