/*
 * Bursts: some functions are switched on again for the time between two samples of one
 * thread, to see how often they are called.  Samples come at even distances of processor
 * time, whatever the program does, and the distance between bursts is random.  So the
 * mean of the rates is that of the whole time.
 *
 * The calls of a burst cost time.  All bursts together take a fiftieth of the processor
 * time, or a third of a smaller budget.  A function's chance to be in a burst falls with
 * the square root of its calls, so hot ones are in fewer bursts and take more of the
 * time.
 */
#include "budget/controller.h"

#include <shim/builtin.h>

#include <shim/banned.h>

#define FUNCTIONS_MAX 64 /* in one burst */
#define CALLS_ROOM    256
#define FORGET_AFTER  8 /* samples: the thread of the burst sleeps */

/* The part of a burst's time that its calls shall cost, in 1/10^12. */
#define INTENSITY 300000000000ull

static struct throttled *in_burst[FUNCTIONS_MAX];
static uint32_t burst_size;
static struct tree *burst_tree; /* NULL: no burst */
static uint64_t burst_life, burst_begin_ns, burst_weight;
static uint64_t next_burst;
/* The mean cost of a burst, in ns. */
static uint64_t mean_cost_ns = 500000;
static uint64_t switching_ns;
static struct shim_hook_call calls[CALLS_ROOM];

/* --- chance --- */

static uint64_t chance_state;

static uint64_t chance(void)
{
	uint64_t x = chance_state ? chance_state : shim_clock_read() | 1;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	chance_state = x;
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

/* The square root of its calls in a second, at least 30. */
static uint64_t root_of(struct throttled *throttled)
{
	uint64_t rate = throttled->ns / 1000 ? throttled->calls * 1000000 /
						       (throttled->ns / 1000) :
					       0;

	if (throttled->root == 0)
		throttled->root = rate < 900 ? 30 : square_root(rate);
	return throttled->root;
}

static void choose(uint64_t cost)
{
	uint64_t sum = 0, factor;
	uint32_t count = throttled_count, first;

	for (uint32_t i = 0; i < count; i++)
		if (throttled_state(throttled_get(i)) == THROTTLED_OFF)
			sum += root_of(throttled_get(i));
	burst_size = 0;
	if (sum == 0)
		return;
	/* The chance is factor / root, in 2^-20: INTENSITY over the cost of a call,
	 * in 10^-12 s, and the sum. */
	factor = (INTENSITY << 20) / ((cost ? cost : 1) * sum);
	first = (uint32_t)(chance() % count);
	for (uint32_t i = 0; i < count && burst_size < FUNCTIONS_MAX; i++) {
		struct throttled *throttled = throttled_get((first + i) %
							    count);

		if (throttled_state(throttled) == THROTTLED_OFF &&
		    (chance() & 0xfffff) < factor / root_of(throttled))
			in_burst[burst_size++] = throttled;
	}
}

/* --- switching --- */

/* The sites of all functions of the burst, in as few batches as there is room for.
 * False: some could not be switched. */
static bool switch_sites(bool on)
{
	bool all = true;
	uint32_t count = 0;

	for (uint32_t i = 0; i < burst_size; i++) {
		uint32_t first = 0, more;

		do {
			if (count == CALLS_ROOM) {
				all &= shim_profiler_switch_calls(
					       tree_handle, on, count, calls) ==
				       SHIM_OK;
				count = 0;
			}
			more = throttled_list(in_burst[i], first,
					      CALLS_ROOM - count,
					      calls + count);
			first += more;
			count += more;
		} while (count == CALLS_ROOM);
	}
	if (count > 0)
		all &= shim_profiler_switch_calls(tree_handle, on, count,
						  calls) == SHIM_OK;
	return all;
}

static bool change_state(struct throttled *throttled, uint32_t from,
			 uint32_t to)
{
	return __atomic_compare_exchange_n(&throttled->state, &from, to, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* The calls of the function that this thread's tree has. */
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

/* All sites are on before a call counts: else an enter may be seen without its leave. */
static void begin(const struct moment *moment)
{
	uint64_t clock = shim_clock_read();

	choose(controller_cost(moment->meta));
	if (burst_size == 0)
		return;
	for (uint32_t i = 0; i < burst_size; i++)
		change_state(in_burst[i], THROTTLED_OFF, THROTTLED_ARMING);
	switch_sites(true);
	for (uint32_t i = 0; i < burst_size; i++) {
		in_burst[i]->begin = calls_in(in_burst[i], moment->tree);
		if (change_state(in_burst[i], THROTTLED_ARMING,
				 THROTTLED_BURST))
			throttled_mark(in_burst[i], false);
	}
	burst_tree = moment->tree;
	burst_life = moment->tree->life;
	burst_weight = moment->weight;
	switching_ns = controller_ns(moment->meta, shim_clock_read() - clock);
	burst_begin_ns = shim_thread_time_ns();
}

/* --- the end --- */

static void add_square(uint64_t squares[2], uint64_t value)
{
	unsigned __int128 sum = (unsigned __int128)squares[1] << 64 |
				squares[0];

	sum += (unsigned __int128)value * value;
	squares[0] = (uint64_t)sum;
	squares[1] = (uint64_t)(sum >> 64);
}

/* @hooks_ns: of all calls of the burst, which @ns of processor time does not contain. */
static void note(struct throttled *throttled, uint64_t count, uint64_t ns,
		 uint64_t hooks_ns)
{
	struct shim_throttled_node *node = throttled->node;
	uint64_t rate = count * 15625000 / ns; /* in 1/64 s */

	throttled->calls += count;
	throttled->ns += ns;
	throttled->root = 0;
	if (!node)
		return;
	node->calls += count;
	node->ns += ns;
	node->rates += rate;
	add_square(node->squares, rate);
	node->slopes += rate * hooks_ns / ns;
	__atomic_store_n(&node->bursts, node->bursts + 1, __ATOMIC_RELEASE);
}

static uint64_t note_all(const struct moment *moment, uint64_t ns)
{
	uint64_t cost = controller_cost(moment->meta), sum = 0, hooks_ns;

	for (uint32_t i = 0; i < burst_size; i++) {
		in_burst[i]->begin = calls_in(in_burst[i], burst_tree) -
				     in_burst[i]->begin;
		sum += in_burst[i]->begin;
	}
	hooks_ns = sum * cost / 1000;
	/* The cost of a call is an estimate: more than seven eighths of the time
	 * cannot be true. */
	if (hooks_ns > ns - ns / 8)
		hooks_ns = ns - ns / 8;
	for (uint32_t i = 0; i < burst_size; i++)
		if (throttled_state(in_burst[i]) == THROTTLED_BURST)
			note(in_burst[i], in_burst[i]->begin, ns - hooks_ns,
			     hooks_ns);
	__atomic_fetch_add(&moment->meta->bursts, 1, __ATOMIC_RELAXED);
	return hooks_ns;
}

static void switch_off(void)
{
	for (uint32_t i = 0; i < burst_size; i++) {
		in_burst[i]->epoch = throttled_begin_epoch();
		in_burst[i]->strays = 0;
		if (change_state(in_burst[i], THROTTLED_BURST, THROTTLED_OFF))
			throttled_mark(in_burst[i], true);
	}
	switch_sites(false);
	throttled_end_epoch();
	burst_tree = NULL;
}

static void end(const struct moment *moment)
{
	uint64_t now_ns = shim_thread_time_ns(), clock = shim_clock_read();
	uint64_t cost_ns = 0;
	bool is_whole = now_ns > burst_begin_ns + 1000 && burst_begin_ns != 0 &&
			burst_tree == moment->tree &&
			burst_life == burst_tree->life;

	if (is_whole)
		cost_ns = note_all(moment, now_ns - burst_begin_ns);
	switch_off();
	cost_ns += switching_ns +
		   controller_ns(moment->meta, shim_clock_read() - clock);
	mean_cost_ns = (mean_cost_ns * 7 + cost_ns) / 8;
}

/* In samples.  The average is chosen by the mean cost, so that the times of bursts do
 * not depend on what the program does. */
static uint64_t any_distance(const struct moment *moment)
{
	uint64_t share = controller_percent < 6 ? 300 / controller_percent : 50;
	uint64_t mean = mean_cost_ns * share / moment->meta->sample_period_ns;

	if (mean < 4)
		mean = 4;
	return 1 + chance() % (2 * mean);
}

void bursts_step(const struct moment *moment)
{
	if (burst_tree) {
		if (burst_tree != moment->tree &&
		    moment->weight - burst_weight < FORGET_AFTER)
			return;
		end(moment);
		next_burst = moment->weight + any_distance(moment);
		return;
	}
	if (throttled_count == 0 || moment->weight < next_burst)
		return;
	if (next_burst > 0)
		begin(moment);
	if (!burst_tree)
		next_burst = moment->weight + any_distance(moment);
}

/* The child has the code as the parent had it. */
void bursts_forked(void)
{
	next_burst = 0;
	if (!burst_tree)
		return;
	for (uint32_t i = 0; i < burst_size; i++) {
		change_state(in_burst[i], THROTTLED_ARMING, THROTTLED_OFF);
		change_state(in_burst[i], THROTTLED_BURST, THROTTLED_OFF);
		in_burst[i]->epoch = throttled_begin_epoch();
	}
	switch_sites(false);
	throttled_end_epoch();
	burst_tree = NULL;
}
