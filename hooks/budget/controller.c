/*
 * The controller: at some samples, it adds up the calls of each function since its last
 * look.  If these calls have cost more than their part of the budget, it switches functions
 * off, beginning with the most calls, until the rest fits into two thirds of that part.
 *
 * The function of a stack's outermost call is never switched off.
 */
#include "budget/controller.h"
#include "budget/functions.h"
#include "budget/sampled.h"
#include "path/nodes.h"
#include "path/threads.h"

#include <shim/builtin.h>

#include <shim/banned.h>

#define FIRST_LOOK 2   /* samples */
#define LOOK_MIN   3   /* samples between two looks */
#define LOOK_MAX   100 /* the same */
/* Looks take at most 1/SHARE of the time, or 1/HOT_SHARE when samples show that hooks
 * take more than the budget. */
#define SHARE	      500
#define HOT_SHARE     30
#define HOT_SHARE_MAX 100
#define CALLS_LEAST   64 /* in the time between two looks */

/* Hooks cost more in a program than in the loop that measures their cost. */
#define MARGIN_PERCENT 150

/* What samples find in hooks and counters gets the first part of a small budget, and the second
 * of one of 100.  Programs lose about as much again to what no sample finds: interrupts,
 * jumps, cold caches. */
#define SEEN_PERCENT	   45
#define SEEN_PERCENT_LARGE 100
/* Calls that are counted get such parts, too, over the whole run and a begin of some samples: a
 * short phase with many calls does not end the counting. */
#define COUNTED_PERCENT	      8
#define COUNTED_PERCENT_LARGE 92
#define COUNTED_BEGIN	      50
/* Hooks may take this percentage of what may be seen; or as many percent as the budget has, if that
 * is larger.  When functions are switched off, hooks keep half of it.  Only hooks know paths. */
#define HOOKS_PERCENT 15

uint32_t controller_percent;

uint64_t controller_ns(const struct shim_meta *meta, uint64_t clock)
{
	uint64_t hz = meta->clock_hz;

	if (hz == 0)
		return 0;
	return clock / hz * 1000000000u + clock % hz * 1000000000u / hz;
}

static uint64_t calibrated_cost(const struct shim_meta *meta)
{
	const struct shim_cost *cost = &meta->cost_coarse;

	return controller_ns(meta, (uint64_t)cost->inside + cost->outside);
}

/* --- the costs of a call, in 1/1000 ns --- */

static uint32_t last_counter;
/* Calls of hooks up to the last look, and samples in hooks, bursts excluded. */
static uint64_t hook_calls, hook_samples;

/* @expected is known, and weighs as much as PRIOR samples; @samples were in the code of
 * @calls calls. */
#define PRIOR 8

static uint64_t learn(const struct moment *moment, uint64_t expected,
		      uint64_t samples, uint64_t calls)
{
	uint64_t sample = (uint64_t)moment->meta->sample_period_ns * 1000;

	return expected == 0 ? 0 :
			       (PRIOR + samples) * sample /
				       (PRIOR * sample / expected + calls);
}

static uint64_t expected_cost(const struct moment *moment)
{
	return calibrated_cost(moment->meta) * MARGIN_PERCENT / 100;
}

/* Marks cost more than calls of hooks.  Samples in our code may also be in jumps and the
 * like, which no other choice of functions would spare, so the cost has bounds. */
uint64_t controller_hooks_cost(const struct moment *moment)
{
	uint64_t expected = expected_cost(moment);
	uint64_t cost = learn(moment, expected, hook_samples, hook_calls);

	if (cost > 3 * expected)
		return 3 * expected;
	return cost < expected / 2 ? expected / 2 : cost;
}

/* At its site a call costs 0.8 to 1.4 ns to count where the hooks cost 5 to 7; at a mark,
 * twice as much. */
#define COUNTED_SHARE 6

/* @counted: all calls that were counted outside of bursts. */
static uint64_t counted_cost_of(const struct moment *moment, uint64_t counted)
{
	return learn(moment, expected_cost(moment) / COUNTED_SHARE,
		     moment->counters, counted + bursts_counted());
}

uint64_t controller_counted_cost(const struct moment *moment)
{
	return counted_cost_of(moment, throttled_sum(last_counter));
}

uint64_t controller_counted_in(const struct tree *tree)
{
	return throttled_sum_in(tree, last_counter);
}

static uint64_t changes;

uint64_t controller_changes(void)
{
	return changes;
}

static void visit_count(struct tree *tree, struct shim_node *node)
{
	struct function *function = functions_find(node);
	struct throttled *throttled;

	if (!function)
		function = functions_note(node);
	if (!function)
		return;
	function->calls += __atomic_load_n(&node->calls, __ATOMIC_RELAXED);
	/* The node was made while its function went off. */
	if (!function->is_throttled || (node->function & SHIM_NODE_EXACT))
		return;
	throttled = throttled_find(function->address);
	if (throttled && throttled_state(throttled) == THROTTLED_OFF)
		throttled_add_place(throttled, tree, node);
}

/* --- the choice --- */

static struct throttled *throttled_of(const struct function *function)
{
	return function->is_throttled ? throttled_find(function->address) :
					NULL;
}

static uint64_t difference(const struct function *function)
{
	return function->calls > function->before ?
		       function->calls - function->before :
		       0;
}

/* The calls of hooks since the last look.  Those of bursts are paid for apart.  Those of an
 * image that was unloaded are not counted any more. */
static uint64_t since(const struct function *function)
{
	const struct throttled *throttled = throttled_of(function);

	if (throttled && throttled_state(throttled) < THROTTLED_ON)
		return 0;
	return difference(function);
}

/* The same of a function that is counted at its sites. */
static uint64_t counted_since(const struct function *function)
{
	const struct throttled *throttled = throttled_of(function);

	return throttled && throttled_is_counted(throttled) ?
		       difference(function) :
		       0;
}

#define BUCKETS 256

static uint64_t bucket_calls[BUCKETS];

/* Four buckets for each doubling. */
static unsigned bucket_of(uint64_t calls)
{
	unsigned top;

	if (calls < 4)
		return (unsigned)calls;
	top = 63 - (unsigned)__builtin_clzll(calls);
	return top * 4 + (unsigned)(calls >> (top - 2) & 3);
}

/* Leaves tell least: they come first. */
static unsigned hook_bucket(const struct function *function)
{
	return bucket_of(since(function) >> function->has_callees);
}

static bool may_go(const struct function *function)
{
	return !function->is_outermost && !function->is_throttled &&
	       since(function) >= CALLS_LEAST;
}

/* The lowest bucket whose functions go, if @left calls may stay, of which @staying will
 * anyway. */
static unsigned limit_of(uint64_t staying, uint64_t left)
{
	for (unsigned i = 0; i < BUCKETS; i++) {
		staying += bucket_calls[i];
		if (staying > left && bucket_calls[i] > 0)
			return i;
	}
	return BUCKETS;
}

static void clear_buckets(void)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		bucket_calls[i] = 0;
}

/* From which bucket on functions have no hooks, if @left calls of hooks may stay. */
static unsigned find_hooks_limit(uint64_t left)
{
	uint64_t staying = 0;

	clear_buckets();
	for (uint32_t i = 0; i < functions_count; i++) {
		const struct function *function = &functions[i];

		if (may_go(function))
			bucket_calls[hook_bucket(function)] += since(function);
		else
			staying += since(function);
	}
	return limit_of(staying, left);
}

/* From which bucket on functions are not even counted, if @left calls may be. */
static unsigned find_counted_limit(unsigned hooks_limit, uint64_t left)
{
	clear_buckets();
	for (uint32_t i = 0; i < functions_count; i++) {
		const struct function *function = &functions[i];
		uint64_t calls = counted_since(function);

		if (calls == 0 && may_go(function) &&
		    hook_bucket(function) >= hooks_limit)
			calls = since(function);
		bucket_calls[bucket_of(calls)] += calls;
	}
	return limit_of(0, left);
}

/* --- switching off --- */

void controller_describe(const struct moment *moment,
			 struct throttled *throttled)
{
	struct shim_throttled_node *node = tree_take(moment->tree,
						     sizeof(*node));

	if (!node)
		return;
	throttled->area = throttled->squares = 0; /* of the parent */
	node->address = throttled->function;
	node->weight = moment->weight;
	node->counter = throttled->counter;
	node->state = throttled->is_counted ? SHIM_THROTTLED_COUNTED :
					      SHIM_THROTTLED_OFF;
	__atomic_store_n(&node->function, SHIM_NODE_THROTTLED,
			 __ATOMIC_RELEASE);
	__atomic_store_n(&throttled->node, node, __ATOMIC_RELEASE);
	__atomic_fetch_add(&moment->meta->throttled, 1, __ATOMIC_RELAXED);
}

/* Before the calls were counted. */
static uint32_t unloads;

static void switch_off(const struct moment *moment, struct function *function,
		       uint64_t passed_ns, bool is_counted)
{
	bool has_counter = is_counted && last_counter + 1 < BURST_COUNTERS;
	uint64_t calls = since(function);
	struct throttled *throttled = throttled_add(
		function->address, has_counter ? last_counter + 1 : 0);

	if (!throttled)
		return;
	last_counter += has_counter;
	/* Its address may be another function's by now. */
	if (throttled_unloads() != unloads) {
		throttled_release(throttled);
		return;
	}
	throttled->calls = calls;
	throttled->ns = passed_ns;
	function->is_chosen = function->is_throttled = true;
	controller_describe(moment, throttled);
}

static void visit_chosen(struct tree *tree, struct shim_node *node)
{
	const struct function *function = functions_find(node);
	struct throttled *throttled;

	if (!function || !function->is_chosen)
		return;
	throttled = throttled_find(function->address);
	if (!throttled)
		return;
	throttled_add_place(throttled, tree, node);
	/* The reader needs the number of calls before. */
	node->time = __atomic_load_n(&node->calls, __ATOMIC_RELAXED);
}

/* Counted functions that go off together. */
#define UNCOUNTED_MAX 64

static struct throttled *uncounted[UNCOUNTED_MAX];
static uint32_t uncounted_size;

static void flush_uncounted(void)
{
	throttled_uncount(uncounted, uncounted_size);
	uncounted_size = 0;
}

static void uncount(const struct function *function, uint64_t passed_ns)
{
	struct throttled *throttled = throttled_of(function);

	throttled->calls = counted_since(function);
	throttled->ns = passed_ns;
	if (uncounted_size == UNCOUNTED_MAX)
		flush_uncounted();
	uncounted[uncounted_size++] = throttled;
}

/* Hooks go from bucket @hooks_limit on, and counters from @counted_limit on. */
static bool switch_off_from(const struct moment *moment, unsigned hooks_limit,
			    unsigned counted_limit, uint64_t passed_ns)
{
	bool any = false, is_off = false;

	for (uint32_t i = 0; i < functions_count; i++) {
		struct function *function = &functions[i];
		uint64_t counted = counted_since(function);

		if (may_go(function) && hook_bucket(function) >= hooks_limit) {
			switch_off(moment, function, passed_ns,
				   bucket_of(since(function)) < counted_limit);
			any |= function->is_chosen;
		} else if (counted > 0 && bucket_of(counted) >= counted_limit) {
			uncount(function, passed_ns);
			is_off = true;
		}
	}
	flush_uncounted();
	changes += any || is_off;
	if (!any)
		return is_off;
	functions_each_node(visit_chosen);
	for (uint32_t i = 0; i < functions_count; i++)
		functions[i].is_chosen = false;
	throttled_end_epoch();
	return true;
}

/* --- a look --- */

static uint64_t next_look = FIRST_LOOK, last_weight, last_own_ns, period;
static uint64_t last_sum; /* of counted calls */
static uint64_t last_cost_ns;

static void count_calls(void)
{
	unloads = throttled_unloads();
	for (uint32_t i = 0; i < functions_count; i++) {
		functions[i].before = functions[i].calls;
		functions[i].calls = 0;
	}
	functions_each_node(visit_count);
	for (uint32_t i = 0; i < functions_count; i++) {
		const struct throttled *throttled = throttled_of(&functions[i]);

		if (throttled && throttled_is_counted(throttled))
			functions[i].calls += throttled_counted(throttled);
	}
}

static uint64_t sum_of(uint64_t (*calls)(const struct function *function))
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < functions_count; i++)
		sum += calls(&functions[i]);
	return sum;
}

/* What may be spent of a budget, of which a small one gives @small percent, and one of 100
 * @large; in 1/10000 of the time. */
static uint64_t part_of_budget(uint64_t small, uint64_t large)
{
	return controller_percent *
	       (small + controller_percent * (large - small) / 100);
}

/* The part of the budget for counting, in ns, in the time of @samples. */
static uint64_t counted_part(const struct moment *moment, uint64_t samples)
{
	return samples * moment->meta->sample_period_ns / 10000 *
	       part_of_budget(COUNTED_PERCENT, COUNTED_PERCENT_LARGE);
}

/* Whether counting takes more than its part, over the whole run and since the last look. */
static bool is_counting_dear(const struct moment *moment)
{
	uint64_t sum = throttled_sum(last_counter);
	uint64_t cost = counted_cost_of(moment, sum);

	return sum * cost / 1000 >
		       counted_part(moment, moment->weight + COUNTED_BEGIN) &&
	       (sum - last_sum) * cost / 1000 >
		       counted_part(moment, moment->weight - last_weight);
}

/* Whether functions were switched off.  Hooks know paths; for their cost, counters know
 * six times as many calls. */
static bool decide(const struct moment *moment)
{
	uint64_t passed_ns = (moment->weight - last_weight) *
			     moment->meta->sample_period_ns;
	uint64_t allowed_ns = passed_ns / 10000 *
			      part_of_budget(SEEN_PERCENT, SEEN_PERCENT_LARGE);
	uint64_t cost = controller_hooks_cost(moment);
	uint64_t counted_cost = controller_counted_cost(moment);
	uint64_t own_ns = moment->meta->own_ns - last_own_ns;
	uint64_t target_ns = allowed_ns * 2 / 3, target;
	uint64_t hooks_ns = sum_of(since) * cost / 1000;
	uint64_t counters_ns = sum_of(counted_since) * counted_cost / 1000;
	uint64_t hooks_percent = controller_percent > HOOKS_PERCENT ?
					 controller_percent :
					 HOOKS_PERCENT;
	unsigned hooks_limit = BUCKETS, counted_limit = BUCKETS;
	bool is_dear = is_counting_dear(moment);

	if (cost == 0 || counted_cost == 0 ||
	    (hooks_ns + counters_ns + own_ns <= allowed_ns &&
	     hooks_ns <= allowed_ns / 100 * hooks_percent && !is_dear))
		return false;
	/* Sampling alone may cost more than a small budget. */
	target_ns = target_ns > own_ns + allowed_ns / 4 ? target_ns - own_ns :
							  allowed_ns / 4;
	target = target_ns * 1000 / cost * hooks_percent / 200;
	hooks_limit = find_hooks_limit(target);
	target = counted_part(moment, moment->weight - last_weight) * 2 / 3 *
		 1000 / counted_cost;
	if (is_dear)
		counted_limit = find_counted_limit(hooks_limit, target);
	return switch_off_from(moment, hooks_limit, counted_limit, passed_ns);
}

/* The next look comes after a longer interval, but as early as its cost allows. */
static void plan_next(const struct moment *moment, uint64_t cost_ns)
{
	uint64_t wait = cost_ns * SHARE / moment->meta->sample_period_ns;

	period = period < LOOK_MIN     ? LOOK_MIN :
		 period * 2 > LOOK_MAX ? LOOK_MAX :
					 period * 2;
	next_look = moment->weight + (wait > period ? wait : period);
	last_weight = moment->weight;
	last_own_ns = moment->meta->own_ns;
	last_sum = throttled_sum(last_counter);
	last_cost_ns = cost_ns;
}

/* Looks at hot hooks that change nothing are repeated at longer and longer
 * intervals. */
static uint64_t hot_share = HOT_SHARE;

/* Whether more of the last @count samples were in hooks than @percent, and @least.
 * @recent has a bit for each sample, which is set if the sample was in a hook. */
static bool are_many(uint32_t recent, unsigned count, unsigned least,
		     unsigned percent)
{
	uint32_t last = recent & (0xffffffffu >> (32 - count));
	unsigned hits = (unsigned)__builtin_popcount(last);

	return hits >= least && hits * 100 > count * percent;
}

/* Notes the sample.  Whether the last ones show that hooks take more than the budget: the
 * short row finds new hot functions at once, the long one those that take little more. */
static bool are_hooks_hot(const struct moment *moment)
{
	static uint64_t seen;
	static uint32_t recent;
	uint64_t more = bursts_tree() ? 0 : moment->hooks - seen;

	seen = moment->hooks;
	hook_samples += more;
	recent = recent << 1 | (more > 0);
	return are_many(recent, 8, 2, controller_percent) ||
	       ((recent & 255) != 0 &&
		are_many(recent, 32, 3, controller_percent * 3 / 4));
}

/* Whether calls cost too much since the last look, which must not be too recent. */
static bool is_hot(const struct moment *moment)
{
	uint64_t passed = moment->weight - last_weight;
	bool are_hot = are_hooks_hot(moment);

	return passed >= LOOK_MIN &&
	       passed * moment->meta->sample_period_ns >=
		       last_cost_ns * hot_share &&
	       (are_hot || is_counting_dear(moment));
}

void controller_look(const struct moment *moment)
{
	bool hot = is_hot(moment);
	uint64_t begin, cost_ns;

	if (moment->weight < next_look && !hot)
		return;
	begin = shim_thread_time_ns();
	count_calls();
	hook_calls += sum_of(since);
	/* Without the switching, which the next look will not repeat. */
	cost_ns = shim_thread_time_ns() - begin;
	if (decide(moment))
		hot_share = HOT_SHARE;
	else if (hot && hot_share < HOT_SHARE_MAX)
		hot_share *= 2;
	plan_next(moment, cost_ns);
}

void controller_image_gone(uintptr_t low, uintptr_t high)
{
	for (uint32_t i = 0; i < functions_count; i++)
		if (functions[i].address >= low && functions[i].address < high)
			functions[i] = (struct function){
				.address = functions[i].address
			};
}

static void release(struct throttled *throttled)
{
	for (uint32_t i = 0; i < functions_count; i++)
		if (functions[i].address == throttled->function)
			functions[i].is_throttled = false;
	throttled_release(throttled);
}

void controller_forked(void)
{
	struct moment moment = { .meta = shim_record_meta() };

	for (uint32_t i = 0; i < functions_count; i++)
		functions[i].calls = functions[i].before = 0;
	next_look = FIRST_LOOK;
	last_weight = last_own_ns = period = last_sum = 0;
	budget_samples_counters = hook_calls = hook_samples = 0;
	if (throttled_count == 0 || !moment.meta)
		return;
	moment.tree = tree_get((uintptr_t)__builtin_frame_address(0));
	for (uint32_t i = 0; moment.tree && i < throttled_count; i++) {
		uint32_t state = throttled_state(throttled_get(i));

		if (throttled_is_counted(throttled_get(i)))
			release(throttled_get(i));
		else if (state < THROTTLED_ON)
			controller_describe(&moment, throttled_get(i));
		/* The functions were on again before the fork, so all calls of the
		 * child are counted. */
		else if (state == THROTTLED_ON)
			moment.meta->throttle_failed++;
	}
}
