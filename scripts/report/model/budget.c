/*
 * Adds samples and estimates to the paths.
 *
 * A sample represents time like a tick: outside of hooks it is the program's
 * time, in a hook it is our own.  Uncounted calls of a function are divided
 * among its paths in proportion to the calls that were counted in bursts.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "model/budget.h"
#include "model/model.h"
#include "model/node_times.h"
#include "read/calltree.h"
#include "read/process.h"

#define PERIOD_MAX 1000000000u

static bool has_samples(const struct process *process)
{
	const struct shim_meta *meta = &process->meta;

	return process->has_meta && meta->sample_period_ns > 0 &&
	       meta->sample_period_ns <= PERIOD_MAX;
}

bool budget_has(const struct process *process)
{
	return has_samples(process) && process->meta.budget > 0;
}

bool budget_is_calibrated(const struct process *process)
{
	return has_samples(process) && process->meta.budget == 0 &&
	       process->meta.sample_weight > 0;
}

/* --- functions that were switched off --- */

/* The calls of @counter in all files of the process. */
static uint64_t counted_calls(const struct process *process, uint64_t counter)
{
	const size_t calls = offsetof(struct shim_counters_node, calls);
	uint64_t sum = 0, count;
	uint32_t i;

	if (counter == 0 || counter >= SHIM_COUNTERS_MAX)
		return 0;
	for (i = 0; i < process->file_count; i++) {
		const struct tree_file *file = &process->files[i];

		if (!file->counters)
			continue;
		memcpy(&count,
		       file->data + file->counters + calls + 8 * counter,
		       sizeof(count));
		sum += count;
	}
	return sum;
}

static void add_throttled(struct build *build, const struct tree_file *file,
			  const struct throttled *throttled)
{
	struct model *model = build->model;
	struct budget *budget = model->budget;
	const struct shim_meta *meta = &build->process->meta;
	struct throttled_function *added;
	struct shim_throttled_node node;
	uint32_t next = budget->throttled_count;

	memcpy(&node, file->data + throttled->offset, sizeof(node));
	if (node.state != SHIM_THROTTLED_OFF &&
	    node.state != SHIM_THROTTLED_FAILED &&
	    node.state != SHIM_THROTTLED_COUNTED)
		return;
	if (map_add(&build->throttled, throttled->site, next) != next)
		return;
	GROW(budget->throttled, budget->throttled_count,
	     budget->throttled_room);
	added = &budget->throttled[budget->throttled_count++];
	*added = (struct throttled_function){
		.node = node,
		.function = model->recording->sites[throttled->site].function,
		.counted = counted_calls(build->process, node.counter),
	};
	if (node.weight <= meta->sample_weight)
		added->off_ns = (double)(meta->sample_weight - node.weight) *
				(double)meta->sample_period_ns;
	else
		added->node.bursts = 0;
}

/* No process can have computed for longer than the sum of its threads'
 * lives. */
static bool is_weight_possible(const struct process *process, uint64_t weight)
{
	double limit = process_ns(process, process->limit_clock -
						   process->meta.first_clock);

	return (double)weight * (double)process->meta.sample_period_ns <=
	       limit * (1 + (double)process->file_count);
}

static void add_process(struct budget *budget, const struct process *process)
{
	const struct shim_meta *meta = &process->meta;

	budget->percent = fmax(budget->percent, meta->budget / 100.0);
	budget->period_ns = fmax(budget->period_ns,
				 (double)meta->sample_period_ns);
	budget->own_ns += (double)meta->own_ns;
	budget->images_ns += (double)meta->images_ns;
	budget->failed += meta->throttle_failed;
}

void budget_begin(struct build *build)
{
	struct process *process = build->process;
	uint32_t i, n;

	build->throttled = (struct map){ 0 };
	build->counted_count = 0;
	build->has_budget = budget_has(process);
	build->is_calibrated = budget_is_calibrated(process);
	if (!build->has_budget)
		return;
	if (!build->model->budget)
		build->model->budget = allocate(1, sizeof(struct budget));
	build->first_throttled = build->model->budget->throttled_count;
	add_process(build->model->budget, process);
	if (!is_weight_possible(process, process->meta.sample_weight))
		process->meta.sample_weight = 0;
	for (i = 0; i < process->file_count; i++)
		for (n = 0; n < process->files[i].throttled_count; n++)
			add_throttled(build, &process->files[i],
				      &process->files[i].throttled[n]);
}

void budget_add_node(struct build *build, const struct shim_node *node,
		     const struct entry *entry)
{
	double period = (double)build->process->meta.sample_period_ns;
	struct path *path = &build->model->paths[entry->path];
	uint32_t number = map_get(&build->throttled, entry->site);
	uint64_t before = node->time < node->calls ? node->time : node->calls;
	struct throttled_function *throttled;

	path->is_timed = true;
	path->has_no_range = true;
	path->tick = fmax(path->tick, period);
	path->seen_tick = fmax(path->seen_tick, period);
	build->model->has_errors = true;
	if (number == NONE)
		return;
	throttled = &build->model->budget->throttled[number];
	throttled->before += before;
	throttled->recorded += node->calls - before;
	throttled->paths++;
	GROW(build->counted, build->counted_count, build->counted_room);
	build->counted[build->counted_count++] = (struct counted){
		.path = entry->path,
		.thread = entry->thread,
		.throttled = number,
		.before = before,
		.recorded = node->calls - before,
	};
}

/* The path's share of the calls that were counted at their sites.  The sum of all shares is
 * their number. */
static uint64_t give_counted(struct throttled_function *throttled, double share)
{
	uint64_t before = throttled->given;

	throttled->divided += share;
	throttled->given = whole(throttled->divided *
				 (double)throttled->counted);
	/* The last one gets what rounding has left. */
	if (throttled->divided > 1 - 1e-9)
		throttled->given = throttled->counted;
	return throttled->given > before ? throttled->given - before : 0;
}

/* @missing covers all calls of the function; this adds the path's share. */
static void add_missing(struct build *build, const struct counted *counted_at,
			struct throttled_function *throttled)
{
	struct model *model = build->model;
	struct path *path = &model->paths[counted_at->path];
	bool by_recorded = throttled->recorded > 0;
	double all = by_recorded ? (double)throttled->recorded :
				   (double)throttled->before;
	double share = all > 0 ? (double)(by_recorded ? counted_at->recorded :
							counted_at->before) /
					 all :
				 0;
	uint64_t calls = whole(share * throttled->rest.calls), counted;

	struct missing *of_thread = &model->threads[counted_at->thread].missing;

	path->missing.is_estimate = of_thread->is_estimate = true;
	counted = give_counted(throttled, share);
	path->calls += counted;
	path->missing.calls += counted;
	path->missing.variance += estimate_path_variance(
		(double)throttled->counted, share,
		throttled->before + throttled->recorded, throttled->paths);
	model->threads[counted_at->thread].calls += counted;
	model->calls += counted;
	if (!throttled->rest.is_known) {
		path->missing.is_unknown = of_thread->is_unknown = true;
		return;
	}
	path->calls += calls;
	path->missing.calls += calls;
	path->missing.error += share * throttled->rest.error;
	path->missing.variance += estimate_path_variance(
		throttled->rest.calls, share, throttled->node.bursts,
		throttled->paths);
	model->threads[counted_at->thread].calls += calls;
	of_thread->calls += calls;
	of_thread->error = hypot(of_thread->error,
				 share * throttled->rest.error);
	model->calls += calls;
}

void budget_end(struct build *build)
{
	struct budget *budget = build->model->budget;
	uint32_t i;

	if (!build->has_budget)
		return;
	for (i = build->first_throttled; i < budget->throttled_count; i++) {
		struct throttled_function *throttled = &budget->throttled[i];

		throttled->rest = estimate_calls(&throttled->node,
						 throttled->off_ns);
		estimate_correct_pace(&throttled->rest, &build->process->meta);
		if (throttled->node.state == SHIM_THROTTLED_FAILED)
			throttled->rest.is_known = false;
		if (throttled->node.state == SHIM_THROTTLED_COUNTED)
			throttled->rest = (struct estimate){ .is_known = true };
		throttled->rest.calls = fmax(
			throttled->rest.calls - (double)throttled->recorded, 0);
	}
	for (i = 0; i < build->counted_count; i++)
		add_missing(build, &build->counted[i],
			    &budget->throttled[build->counted[i].throttled]);
	map_free(&build->throttled);
	free(build->counted);
	build->counted = NULL;
	build->counted_count = build->counted_room = 0;
}

/* --- samples --- */

/* Whether the code leads to a hook. */
static bool is_hook(const struct build *build, const struct entry *entry)
{
	const struct model *model = build->model;
	uint32_t chain = model->recording->sites[entry->site].function, count;
	const uint32_t *functions = frames_chain(&model->frames, chain, &count);

	return count > 0 && model->functions[functions[count - 1]].is_hook;
}

/* Instructions that call hooks, also hooks that are off, are not the program's. */
static bool is_hook_site(const struct build *build, const struct entry *entry)
{
	const struct model *model = build->model;

	return model->frames
		.is_hook_site[model->recording->sites[entry->site].function];
}

/* The mean weight of the node's samples: the more, the fewer signals tell about its time. */
static double mean_weight(const struct shim_sampled_node *node)
{
	double weight = (double)node->samples + (double)node->own;

	return node->signals ? fmax(weight / (double)node->signals, 1) : 1;
}

/* Beside exact times: they tell what of these is the program's. */
static void calibrate(const struct build *build, const struct entry *entry,
		      double period, const struct shim_sampled_node *node)
{
	struct path *path = &build->model->paths[entry->path];
	struct self_exactly *exactly = &path->exactly;
	double tick = period * mean_weight(node), time;

	if (path->function == NONE)
		return;
	time = (double)node->samples * period;
	if (is_hook_site(build, entry)) {
		exactly->seen_cost += time;
		time = 0;
	}
	exactly->seen.time += time;
	exactly->seen.variance += time * tick;
	exactly->seen_cost += (double)node->own * period;
	path->seen_tick = fmax(path->seen_tick, tick);
}

void budget_add_samples(struct build *build, const struct entry *entry)
{
	struct model *model = build->model;
	const struct process *process = build->process;
	double period = (double)process->meta.sample_period_ns;
	struct path *path = &model->paths[entry->path];
	struct thread *thread = &model->threads[entry->thread];
	struct shim_sampled_node node;
	double tick, time, own;

	/* Another profiler has taken the sampler over. */
	if (process->has_meta && process->meta.budget == 0 &&
	    process->meta.sample_period_ns == 0)
		return;
	memcpy(&node, build->file->data + entry->offset, sizeof(node));
	if ((!build->has_budget && !build->is_calibrated) ||
	    !is_weight_possible(process, node.samples) ||
	    !is_weight_possible(process, node.own)) {
		if (node.samples || node.own)
			model_blame(&build->bad_times, &build->bad_time_offset,
				    entry->offset);
		return;
	}
	if (build->is_calibrated) {
		calibrate(build, entry, period, &node);
		return;
	}
	tick = period * mean_weight(&node);
	time = (double)node.samples * period;
	own = (double)node.own * period;
	if (is_hook(build, entry)) {
		own += time;
		time = 0;
	}
	model->budget->time_ns += time + own;
	model->budget->hooks_ns += own;
	thread->self_raw += time + own;
	path->own_raw += time + own;
	if (is_hook_site(build, entry)) {
		model->budget->sites_ns += time;
		path->seen_cost += time;
		time = 0;
	}
	thread->self += time;
	model->has_errors = true;
	path->is_sampled = true;
	path->has_no_range = true;
	path->is_timed = path->function != NONE;
	path->tick = fmax(path->tick, tick);
	path->seen_tick = fmax(path->seen_tick, tick);
	path->seen.time += time;
	path->seen.variance += time * tick;
}

/* Children have higher numbers than their parents. */
void budget_add_paths(struct model *model)
{
	double *below;
	uint32_t i;

	if (!model->budget)
		return;
	below = allocate(model->path_count, sizeof(*below));
	for (i = model->path_count - 1; i > 0; i--) {
		struct path *path = &model->paths[i];
		struct path *parent = &model->paths[path->parent];

		below[i] += path->own_raw;
		path->total_raw += below[i];
		path->raw_variance += below[i] * fmax(path->tick,
						      model->budget->period_ns);
		below[path->parent] += below[i];
		if (!path->is_sampled)
			continue;
		parent->is_sampled = true;
		parent->has_no_range = true;
		parent->is_timed = parent->function != NONE;
		parent->tick = fmax(parent->tick, path->tick);
		parent->seen_tick = fmax(parent->seen_tick, path->seen_tick);
	}
	free(below);
}

/* --- totals --- */

static void add_to_all(struct count *all, const struct sums *sums)
{
	struct count count = count_of_sums(sums);

	all->calls += count.calls;
	all->exact += count.exact;
	all->error = hypot(all->error, count.error);
	all->is_estimate = true;
	all->is_least |= count.is_least;
}

/* What of a function's calls is an estimate. */
struct doubt {
	double variance;
	uint64_t
		counted; /* calls that were counted at their sites, and are none */
	bool is_any;
};

static void count_function(struct budget *budget, struct sums *sums,
			   const struct doubt *doubt)
{
	if (!doubt->is_any) {
		sums->missing = (struct missing){ 0 };
		budget->counted_functions++;
		budget->counted += doubt->counted;
		return;
	}
	sums->missing.calls -= doubt->counted < sums->missing.calls ?
				       doubt->counted :
				       sums->missing.calls;
	sums->missing.error = sqrt(doubt->variance);
	sums->missing.variance = 0;
	budget->functions++;
	add_to_all(&budget->calls, sums);
}

void budget_measure(struct model *model)
{
	struct budget *budget = model->budget;
	struct doubt *doubts;
	uint32_t i;

	if (!budget)
		return;
	doubts = allocate(model->function_count, sizeof(*doubts));
	for (i = 0; i < budget->throttled_count; i++) {
		const struct throttled_function *throttled =
			&budget->throttled[i];
		struct doubt *doubt = &doubts[throttled->function];

		doubt->variance += throttled->rest.error *
				   throttled->rest.error;
		doubt->counted += throttled->given;
		doubt->is_any |= throttled->node.state !=
				 SHIM_THROTTLED_COUNTED;
	}
	for (i = 0; i < model->function_count; i++) {
		struct sums *sums = &model->functions[i].sums;

		if (sums->missing.is_estimate)
			count_function(budget, sums, &doubts[i]);
	}
	free(doubts);
}
