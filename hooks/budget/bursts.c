/*
 * A burst switches some functions on for the time between two samples of one thread,
 * and counts their calls.  Samples come at even distances of processor time, whatever
 * the program does, and the distance between bursts is random.  So the mean of the
 * rates is the mean of the whole time.
 *
 * In most bursts, the calls are counted at their sites, which costs a sixth of a call of
 * hooks.  In the others they reach the hooks, which know their paths.
 *
 * The calls of a burst cost time, and so does the switching.  All bursts together take a sixth
 * of the budget, or more if hooks and samples take less than a third of it.  They take a
 * quarter if the program calls hooks: nothing is inlined then, so that more functions are to be
 * counted, and more code is switched for each.  A function that costs four times as much in a
 * burst is in half as many: hot functions are in fewer bursts, and take more of the time.  The
 * bursts of a function are nearly evenly spaced: the two around a time tell about that time, and
 * the phases of a program are found.
 */
#include "budget/controller.h"

#include "budget/pace.h"

#include <shim/builtin.h>

#include <shim/banned.h>

#define FUNCTIONS_MAX 256 /* in one burst */
#define CALLS_ROOM    256
/* By then the thread of the burst sleeps. */
#define FORGET_AFTER_NS 10000000
/* One of so many bursts is of hooks. */
#define HOOKS_EVERY 4
/* Code may be unwritable for a while only, as when an object is being closed.  What cannot count
 * in so many bursts never can. */
#define REFUSALS_MAX 3

/* The part of a burst's time that its calls and their switching may cost, in 1/10^12. */
#define INTENSITY 400000000000ull

static struct throttled *in_burst[FUNCTIONS_MAX];
static uint32_t burst_size;
static bool is_counting;
static struct tree *burst_tree; /* NULL: no burst */
static uint64_t burst_life, burst_begin_ns, burst_clock, burst_weight;
static uint64_t next_burst;
/* The mean cost of a burst, in ns. */
static uint64_t mean_cost_ns = 500000;
static uint64_t switching_ns;
static uint64_t counted_sum;
static struct shim_counted_call enters[CALLS_ROOM];
static uint32_t next_counter = BURST_COUNTERS;
/* The program calls hooks (-finstrument-functions), and does not only have marks. */
static bool has_calls;

/* --- random numbers --- */

static uint64_t random_state;

static uint64_t random_number(void)
{
	uint64_t x = random_state ? random_state : shim_clock_read() | 1;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	random_state = x;
	return x * 0x2545f4914f6cdd1dull >> 11;
}

static uint64_t square_root(uint64_t x)
{
	uint64_t root, next;

	if (x < 2)
		return x;
	next = 1ull << ((64 - __builtin_clzll(x) + 1) / 2);
	do {
		root = next;
		next = (root + x / root) / 2;
	} while (next < root);
	return root;
}

/* --- the choice --- */

/* To switch a function on and off costs as much as the counting of some thousand calls, in the
 * millisecond of a burst. */
#define SWITCH_CALLS 4000000 /* in a second */

/* The square root of the function's cost in a burst: of its calls in a second, and those that
 * cost as much as its switching. */
static uint64_t root_of(struct throttled *throttled)
{
	uint64_t rate = throttled->ns / 1000 ? throttled->calls * 1000000 /
						       (throttled->ns / 1000) :
					       0;

	if (throttled->root == 0)
		throttled->root = square_root(rate + SWITCH_CALLS);
	return throttled->root;
}

/* A function is in more bursts until it has had two: without them, nothing is known of it. */
#define BURSTS_LEAST 2
#define EAGERNESS    8

static uint64_t eagerness_of(const struct throttled *throttled)
{
	const struct shim_throttled_node *node = throttled->node;

	return node && node->bursts < BURSTS_LEAST ? EAGERNESS : 1;
}

#define ONE (1u << 20)

/* Whether the function's credit suffices: a function is in a burst after 0.5 to 1.5
 * times its mean distance. */
static bool is_due(struct throttled *throttled, uint64_t share)
{
	if (throttled->need == 0) {
		throttled->need = ONE / 2 + random_number() % ONE;
		throttled->credit = random_number() % throttled->need;
	}
	throttled->credit += share < ONE ? share : ONE;
	if (throttled->credit < throttled->need)
		return false;
	throttled->credit -= throttled->need;
	throttled->need = ONE / 2 + random_number() % ONE;
	return true;
}

static bool is_off(const struct throttled *throttled)
{
	return throttled_state(throttled) == THROTTLED_OFF &&
	       !throttled_is_counted(throttled);
}

/* Whether the burst can have the function.  Calls that the filter excludes are not counted
 * at their sites; at the hooks they show that. */
static bool may_be_chosen(const struct throttled *throttled)
{
	return is_off(throttled) &&
	       !(is_counting && (throttled->refusals >= REFUSALS_MAX ||
				 shim_filter_admits(throttled->function) != 1));
}

static uint64_t cost_of_call(const struct moment *moment)
{
	return is_counting ? controller_counted_cost(moment) :
			     controller_hooks_cost(moment);
}

static void choose_functions(uint64_t cost)
{
	uint64_t sum = 0, factor;
	uint32_t count = throttled_count, first;

	for (uint32_t i = 0; i < count; i++)
		if (may_be_chosen(throttled_get(i)))
			sum += root_of(throttled_get(i)) *
			       eagerness_of(throttled_get(i));
	burst_size = 0;
	if (sum == 0)
		return;
	/* The share is factor / root, in 2^-20: INTENSITY over the cost of a call,
	 * in 10^-12 s, and the sum. */
	factor = (INTENSITY << 20) / ((cost ? cost : 1) * sum);
	first = (uint32_t)(random_number() % count);
	for (uint32_t i = 0; i < count && burst_size < FUNCTIONS_MAX; i++) {
		struct throttled *throttled = throttled_get((first + i) %
							    count);

		if (may_be_chosen(throttled) &&
		    is_due(throttled, factor * eagerness_of(throttled) /
					      root_of(throttled)))
			in_burst[burst_size++] = throttled;
	}
}

/* --- switching --- */

static bool change_state(struct throttled *throttled, uint32_t from,
			 uint32_t to)
{
	return __atomic_compare_exchange_n(&throttled->state, &from, to, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* The function's calls that this thread's tree has counted. */
static uint64_t calls_in(const struct throttled *throttled,
			 const struct tree *tree)
{
	uint64_t sum = 0;

	for (const struct throttled_place *place = throttled->places; place;
	     place = place->next)
		if (place->tree == tree)
			sum += place->node->calls;
	return sum;
}

/* All sites are on before a call counts.  Otherwise a leave might be missed. */
static void begin_hooks(const struct moment *moment)
{
	for (uint32_t i = 0; i < burst_size; i++)
		change_state(in_burst[i], THROTTLED_OFF, THROTTLED_ARMING);
	throttled_switch(in_burst, burst_size, true);
	for (uint32_t i = 0; i < burst_size; i++) {
		in_burst[i]->begin = calls_in(in_burst[i], moment->tree);
		if (change_state(in_burst[i], THROTTLED_ARMING,
				 THROTTLED_BURST))
			throttled_mark(in_burst[i], false);
	}
}

/* --- counting --- */

static bool give_counter(struct throttled *throttled)
{
	if (throttled->burst_counter == 0 && next_counter < SHIM_COUNTERS)
		throttled->burst_counter = next_counter++;
	return throttled->burst_counter != 0;
}

static uint64_t counted_in(const struct throttled *throttled,
			   const struct tree *tree)
{
	const uint64_t *counters = __atomic_load_n(&tree->counters,
						   __ATOMIC_ACQUIRE);

	return counters ? __atomic_load_n(&counters[throttled->burst_counter],
					  __ATOMIC_RELAXED) :
			  0;
}

/* Functions that cannot be counted leave the burst; their sites may be on until its end,
 * and count what is not read. */
static void refuse_uncounted(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; !enters[i].is_counted && j < burst_size;
		     j++)
			if (in_burst[j]->burst_counter == enters[i].counter)
				in_burst[j]->is_refused = true;
}

static void count_enters(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < burst_size; i++) {
		uint32_t first = 0, more;

		do {
			if (count == CALLS_ROOM) {
				shim_profiler_count_calls(tree_handle, count,
							  enters);
				refuse_uncounted(count);
				count = 0;
			}
			more = throttled_list_enters(in_burst[i], first,
						     CALLS_ROOM - count,
						     enters + count);
			has_calls |= more > 0 && enters[count].address != 0;
			first += more;
			count += more;
		} while (count == CALLS_ROOM);
		/* No call of it has been met yet. */
		if (first == 0)
			in_burst[i]->is_burst_counted = false;
	}
	if (count > 0)
		shim_profiler_count_calls(tree_handle, count, enters);
	refuse_uncounted(count);
	for (uint32_t i = 0; i < burst_size; i++) {
		in_burst[i]->refusals += in_burst[i]->is_refused;
		throttled_give_back(in_burst[i]);
	}
}

static void begin_counting(const struct moment *moment)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < burst_size; i++)
		if (give_counter(in_burst[i]))
			in_burst[kept++] = in_burst[i];
	burst_size = kept;
	for (uint32_t i = 0; i < burst_size; i++) {
		in_burst[i]->is_refused = false;
		__atomic_store_n(&in_burst[i]->is_burst_counted, true,
				 __ATOMIC_RELEASE);
	}
	count_enters();
	for (uint32_t i = 0; i < burst_size; i++)
		in_burst[i]->begin = counted_in(in_burst[i], moment->tree);
}

/* --- the begin --- */

static void begin_burst(const struct moment *moment)
{
	uint64_t begin_ns = shim_thread_time_ns();

	is_counting = random_number() % HOOKS_EVERY != 0;
	choose_functions(cost_of_call(moment));
	/* Some calls can only reach the hooks. */
	if (burst_size == 0 && is_counting) {
		is_counting = false;
		choose_functions(cost_of_call(moment));
	}
	if (burst_size == 0)
		return;
	if (is_counting)
		begin_counting(moment);
	else
		begin_hooks(moment);
	burst_tree = moment->tree;
	burst_life = moment->tree->life;
	burst_weight = moment->weight;
	burst_clock = shim_clock_read();
	burst_begin_ns = shim_thread_time_ns();
	switching_ns = burst_begin_ns - begin_ns;
}

/* --- the end --- */

/*
 * Each burst stands for the time between its neighbours, so the mean is the area under
 * the rates, divided by the time off.  Its error comes from the differences between
 * neighbours.  One more burst, whose difference is a whole mean, is added: a few bursts
 * tell little about the time between them.
 */
static void publish_rate(struct throttled *throttled,
			 struct shim_throttled_node *node)
{
	uint64_t bursts = node->bursts + 1;
	uint64_t span = throttled->weight - node->weight;
	uint64_t rates = span ? (uint64_t)(throttled->area * bursts /
					   ((unsigned __int128)2 * span)) :
				throttled->rate * bursts;
	unsigned __int128 mean = rates / bursts;
	unsigned __int128 squares = throttled->squares / 2 + mean * mean +
				    (unsigned __int128)rates * rates / bursts;

	/* 0 would mean that the function had few calls at most. */
	node->rates = rates ? rates : 1;
	node->squares[0] = (uint64_t)squares;
	node->squares[1] = (uint64_t)(squares >> 64);
	__atomic_store_n(&node->bursts, bursts, __ATOMIC_RELEASE);
}

/* In 1/64 s. */
static uint64_t rate_of(uint64_t count, uint64_t ns)
{
	return ns ? count * 15625000 / ns : 0;
}

/* The first burst also stands for the time before it.  The function may reach again the
 * rate at which it was switched off. */
static void add_rate(struct throttled *throttled,
		     const struct shim_throttled_node *node, uint64_t rate)
{
	bool is_first = node->bursts == 0;
	uint64_t begin_burst = is_first ? node->weight : throttled->weight;
	uint64_t before = is_first ? rate : throttled->rate;
	int64_t step = (int64_t)(rate - throttled->rate);

	throttled->area += (unsigned __int128)(before + rate) *
			   (burst_weight - begin_burst);
	throttled->squares += (unsigned __int128)((__int128)step * step)
			      << is_first;
	throttled->rate = rate;
	throttled->weight = burst_weight;
}

/* @hooks_ns: the time of all calls of the burst, which is not part of the processor
 * time @ns. */
static void note_calls(struct throttled *throttled, uint64_t count, uint64_t ns,
		       uint64_t hooks_ns)
{
	struct shim_throttled_node *node = throttled->node;
	uint64_t rate = rate_of(count, ns);

	if (node && node->bursts == 0)
		throttled->rate = rate_of(throttled->calls, throttled->ns);
	throttled->calls += count;
	throttled->ns += ns;
	throttled->root = 0;
	if (!node)
		return;
	node->calls += count;
	node->ns += ns;
	node->slopes += rate * hooks_ns / ns;
	add_rate(throttled, node, rate);
	publish_rate(throttled, node);
}

static uint64_t count_now(const struct throttled *throttled)
{
	return is_counting ? counted_in(throttled, burst_tree) :
			     calls_in(throttled, burst_tree);
}

/* Whether all calls of the function were counted. */
static bool is_whole(const struct throttled *throttled)
{
	return is_counting ? throttled_is_burst_counted(throttled) &&
				     !throttled->is_refused :
			     throttled_state(throttled) == THROTTLED_BURST;
}

static uint64_t note_burst(const struct moment *moment, uint64_t ns)
{
	uint64_t sum = 0, hooks_ns;

	for (uint32_t i = 0; i < burst_size; i++) {
		in_burst[i]->begin = count_now(in_burst[i]) -
				     in_burst[i]->begin;
		sum += in_burst[i]->begin;
	}
	if (is_counting)
		counted_sum += sum;
	hooks_ns = sum * cost_of_call(moment) / 1000;
	/* The cost of a call is an estimate.  More than seven eighths of the time would
	 * be wrong. */
	if (hooks_ns > ns - ns / 8)
		hooks_ns = ns - ns / 8;
	for (uint32_t i = 0; i < burst_size; i++)
		if (is_whole(in_burst[i]))
			note_calls(in_burst[i], in_burst[i]->begin,
				   ns - hooks_ns, hooks_ns);
	pace_burst_ended(ns - hooks_ns);
	pace_publish(moment->meta);
	__atomic_fetch_add(&moment->meta->bursts, 1, __ATOMIC_RELAXED);
	return hooks_ns;
}

static void end_counting(void)
{
	throttled_end_counting(in_burst, burst_size);
	for (uint32_t i = 0; i < burst_size; i++) {
		in_burst[i]->strays = 0;
		__atomic_store_n(&in_burst[i]->is_burst_counted, false,
				 __ATOMIC_RELEASE);
	}
}

/* While the sites are being switched, calls of other threads are ignored. */
static void end_hooks(void)
{
	for (uint32_t i = 0; i < burst_size; i++) {
		in_burst[i]->epoch = throttled_begin_epoch();
		in_burst[i]->strays = 0;
		if (change_state(in_burst[i], THROTTLED_BURST,
				 THROTTLED_ARMING))
			throttled_mark(in_burst[i], true);
	}
	throttled_switch(in_burst, burst_size, false);
	for (uint32_t i = 0; i < burst_size; i++)
		change_state(in_burst[i], THROTTLED_ARMING, THROTTLED_OFF);
	throttled_end_epoch();
}

static void switch_off(void)
{
	if (is_counting)
		end_counting();
	else
		end_hooks();
	burst_tree = NULL;
}

static void end_burst(const struct moment *moment)
{
	uint64_t now_ns = shim_thread_time_ns(), cost_ns = 0;
	bool is_known = moment->begin > burst_begin_ns + 1000 &&
			burst_begin_ns != 0 && burst_tree == moment->tree &&
			burst_life == burst_tree->life;

	if (burst_tree != moment->tree)
		pace_forget();
	if (is_known)
		cost_ns = note_burst(moment, moment->begin - burst_begin_ns);
	switch_off();
	cost_ns += switching_ns + shim_thread_time_ns() - now_ns;
	mean_cost_ns = (mean_cost_ns * 7 + cost_ns) / 8;
}

/* The part of the time that bursts may take, in 1/1000.  If less than a third of the budget is
 * used, they also get half of the difference. */
static uint64_t share_of_bursts(const struct moment *moment)
{
	uint64_t percent = controller_percent < 10 ? controller_percent : 10;
	uint64_t ns = moment->weight * moment->meta->sample_period_ns;
	uint64_t used_ns = moment->hooks * moment->meta->sample_period_ns +
			   moment->meta->own_ns;
	uint64_t used = ns / 1000 ? used_ns / (ns / 1000) : 0;
	uint64_t share = percent * 10 / (has_calls ? 4 : 6);
	uint64_t most = percent * 10 / 3;

	return used < most ? share + (most - used) / 2 : share;
}

/* The distance to the next burst, in samples.  The mean cost determines its average, so
 * the times of bursts do not depend on the program's actions. */
static uint64_t random_distance(const struct moment *moment)
{
	uint64_t share = share_of_bursts(moment);
	uint64_t mean = mean_cost_ns * 1000 /
			((share ? share : 1) * moment->meta->sample_period_ns);

	if (mean < 2)
		mean = 2;
	return mean / 2 + random_number() % mean;
}

/* Whether the burst's thread must end it: the next sample may be another thread's. */
static bool is_of_another(const struct moment *moment)
{
	return burst_tree != moment->tree &&
	       controller_ns(moment->meta, shim_clock_read() - burst_clock) <
		       FORGET_AFTER_NS;
}

void bursts_step(const struct moment *moment)
{
	pace_sample(moment, burst_tree == moment->tree);
	if (burst_tree) {
		if (is_of_another(moment))
			return;
		end_burst(moment);
		next_burst = moment->weight + random_distance(moment);
		return;
	}
	if (throttled_count == 0 || moment->weight < next_burst)
		return;
	if (next_burst > 0)
		begin_burst(moment);
	if (!burst_tree)
		next_burst = moment->weight + random_distance(moment);
}

const struct tree *bursts_tree(void)
{
	return burst_tree;
}

uint64_t bursts_counted(void)
{
	return counted_sum;
}

void bursts_forget(void)
{
	burst_begin_ns = 0;
	pace_forget();
}

/* The child has the same sites switched as the parent. */
void bursts_forked(void)
{
	next_burst = 0;
	counted_sum = 0;
	pace_forked();
	if (!burst_tree)
		return;
	for (uint32_t i = 0; i < burst_size; i++) {
		in_burst[i]->is_burst_counted = false;
		change_state(in_burst[i], THROTTLED_ARMING, THROTTLED_OFF);
		change_state(in_burst[i], THROTTLED_BURST, THROTTLED_OFF);
		in_burst[i]->epoch = throttled_begin_epoch();
	}
	throttled_switch(in_burst, burst_size, false);
	throttled_end_epoch();
	burst_tree = NULL;
}
