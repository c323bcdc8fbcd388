/*
 * Bursts of the budget: the test has the functions that are off, their sites, and the
 * processor time.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "../../hooks/budget/bursts.c"

/* --- what it needs of the engine and of shim --- */

#define FUNCTIONS 3
#define SWITCH_NS 250000

static struct throttled functions[FUNCTIONS];
static struct shim_node nodes[FUNCTIONS];
static struct throttled_place places[FUNCTIONS];
static struct shim_throttled_node described[FUNCTIONS];
static bool is_slow[FUNCTIONS], is_switched_on[FUNCTIONS];
static struct tree tree = { .life = 1 };
static struct shim_meta meta = { .sample_period_ns = 1000000 };
static uint64_t thread_ns = 5000, counters[SHIM_COUNTERS];

uint32_t throttled_count;
uint32_t controller_percent = 10;
struct shim_profiler_handle *tree_handle;

uint64_t shim_thread_time_ns(void)
{
	return thread_ns;
}

uint64_t controller_hooks_cost(const struct moment *of)
{
	(void)of;
	return 6000;
}

uint64_t controller_counted_cost(const struct moment *of)
{
	(void)of;
	return 1000;
}

struct throttled *throttled_get(uint32_t number)
{
	cr_assert(lt(u32, number, FUNCTIONS));
	return &functions[number];
}

void throttled_mark(const struct throttled *throttled, bool slow)
{
	is_slow[throttled - functions] = slow;
}

static uint32_t epoch;

uint32_t throttled_begin_epoch(void)
{
	return epoch + 1;
}

void throttled_end_epoch(void)
{
	epoch++;
}

static bool calls_hooks;

uint32_t throttled_list_enters(const struct throttled *throttled,
			       uint32_t first, uint32_t room,
			       struct shim_counted_call *list)
{
	if (first > 0 || room == 0)
		return 0;
	*list = (struct shim_counted_call){
		.address = calls_hooks ? 0x1000 : 0,
		.counter = throttled->burst_counter
	};
	return 1;
}

void throttled_give_back(const struct throttled *throttled)
{
	(void)throttled;
}

bool throttled_switch(struct throttled *const *list, uint32_t count, bool on)
{
	thread_ns += SWITCH_NS;
	for (uint32_t i = 0; i < count; i++)
		is_switched_on[list[i]->function - 1] = on;
	return true;
}

void throttled_end_counting(struct throttled *const *list, uint32_t count)
{
	throttled_switch(list, count, false);
}

static int admitted = 1;

int shim_filter_admits(uintptr_t function)
{
	(void)function;
	return admitted;
}

/* So often, no call can count. */
static unsigned refused;

enum shim_result shim_profiler_count_calls(struct shim_profiler_handle *handle,
					   uint32_t count,
					   struct shim_counted_call *list)
{
	(void)handle;
	thread_ns += SWITCH_NS;
	for (uint32_t i = 0; i < count; i++)
		list[i].is_counted = refused == 0;
	refused -= refused > 0;
	return SHIM_OK;
}

/* The clock is the test's. */
static uint64_t clock_ns;

uint64_t controller_ns(const struct shim_meta *of, uint64_t clock)
{
	(void)of, (void)clock;
	return clock_ns;
}

/* Calls of a function that is counted all the time. */
static uint64_t counted;

uint64_t controller_counted_in(const struct tree *of)
{
	(void)of;
	return counted;
}

uint64_t controller_changes(void)
{
	return 0;
}

/* --- the run --- */

static struct moment moment = { .tree = &tree, .meta = &meta, .weight = 1 };

static void begin(void)
{
	random_state = 1;
	tree.counters = counters;
	throttled_count = FUNCTIONS;
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		places[i] = (struct throttled_place){ .node = &nodes[i],
						      .tree = &tree };
		functions[i] = (struct throttled){
			.function = i + 1,
			.state = THROTTLED_OFF,
			.places = &places[i],
			.node = &described[i],
			.calls = 100000,
			.ns = 1000000000,
		};
		is_slow[i] = true;
	}
}

static bool is_in_burst(void)
{
	return bursts_tree() != NULL;
}

/* The next sample of the thread, which has called function i @each * (i + 1) times. */
static void sample(uint64_t each)
{
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		if (is_switched_on[i])
			nodes[i].calls += each * (i + 1);
		counters[functions[i].burst_counter] += each * (i + 1);
	}
	thread_ns += meta.sample_period_ns;
	moment.weight++;
	moment.begin = thread_ns;
	bursts_step(&moment);
	pace_sample_ended(thread_ns);
}

static bool is_of_hooks(void)
{
	return is_in_burst() && !is_counting;
}

static void check_off(void)
{
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		cr_assert(
			eq(u32, throttled_state(&functions[i]), THROTTLED_OFF));
		cr_assert(is_slow[i], "function %u", i);
		cr_assert(not(is_switched_on[i]), "function %u", i);
		cr_assert(not(throttled_is_burst_counted(&functions[i])));
	}
}

Test(bursts, calls_take_the_fast_path_in_a_burst_of_hooks_and_only_there)
{
	unsigned seen = 0;

	begin();
	check_off();
	for (unsigned i = 0; i < 3000; i++) {
		sample(10);
		if (!is_in_burst())
			check_off();
		for (uint32_t j = 0; is_of_hooks() && j < burst_size; j++) {
			uint64_t number = in_burst[j]->function - 1;

			cr_assert(eq(u32, throttled_state(in_burst[j]),
				     THROTTLED_BURST));
			cr_assert(not(is_slow[number]));
			cr_assert(is_switched_on[number]);
			seen++;
		}
	}
	cr_expect(gt(u32, seen, 10));
}

/* Only a call that reaches a hook shows whether a filter excludes the function. */
Test(bursts, functions_that_a_filter_may_exclude_are_in_bursts_of_hooks)
{
	unsigned seen = 0;

	begin();
	admitted = -1;
	for (unsigned i = 0; i < 3000; i++) {
		sample(10);
		seen += is_of_hooks();
		cr_assert(not(is_in_burst() && is_counting));
	}
	cr_expect(gt(u32, seen, 10));
}

static unsigned bursts_that_count(unsigned samples)
{
	unsigned seen = 0;

	for (unsigned i = 0; i < samples; i++) {
		sample(10);
		seen += is_in_burst() && is_counting;
	}
	return seen;
}

Test(bursts, what_cannot_count_for_a_while_counts_later)
{
	begin();
	refused = 2;
	cr_expect(gt(u32, bursts_that_count(3000), 10));
	begin();
	refused = UINT32_MAX;
	cr_expect(le(u32, bursts_that_count(3000), REFUSALS_MAX * FUNCTIONS));
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		cr_expect(eq(u32, functions[i].refusals, REFUSALS_MAX));
}

/* The share of the time that bursts take, in 1/1000. */
static uint64_t share_of(unsigned samples, uint64_t own_ns)
{
	uint64_t begin_ns = thread_ns;
	uint64_t passed_ns = samples * meta.sample_period_ns;

	for (unsigned i = 0; i < samples; i++) {
		sample(10);
		meta.own_ns += own_ns;
	}
	return (thread_ns - begin_ns - passed_ns) * 1000 / passed_ns;
}

/* A sixth of the budget of 10 %, and half of what hooks leave of a third of it. */
Test(bursts, they_take_their_part_of_the_time)
{
	uint64_t share;

	begin();
	share = share_of(20000, 0);
	cr_expect(gt(u64, share, 25));
	cr_expect(lt(u64, share, 40));
	meta.own_ns = moment.weight * meta.sample_period_ns / 10;
	share = share_of(20000, meta.sample_period_ns / 10);
	cr_expect(gt(u64, share, 10));
	cr_expect(lt(u64, share, 20));
	/* A quarter. */
	calls_hooks = true;
	share_of(2000, meta.sample_period_ns / 10);
	share = share_of(20000, meta.sample_period_ns / 10);
	cr_expect(gt(u64, share, 21));
	cr_expect(lt(u64, share, 30));
}

Test(bursts, rates_of_functions_are_those_of_the_whole_time)
{
	begin();
	for (unsigned i = 0; i < 50000; i++)
		sample(50);
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		const struct shim_throttled_node *node = &described[i];
		uint64_t wanted = 50000ull * (i + 1) / 64;
		uint64_t mean = node->rates / node->bursts;

		cr_assert(gt(u64, node->bursts, 20));
		cr_expect(gt(u64, mean, wanted * 9 / 10), "function %u", i);
		cr_expect(lt(u64, mean, wanted * 11 / 10), "function %u", i);
	}
	cr_expect(gt(u64, meta.bursts, 100));
}

/* How often each function is in one of @bursts bursts, if the first has had none yet. */
static void count_choices(unsigned bursts, uint64_t begun, unsigned *chosen)
{
	is_counting = true;
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		described[i].bursts = i ? 100 : begun;
	for (unsigned i = 0; i < bursts; i++) {
		choose_functions(200000);
		for (uint32_t j = 0; j < burst_size; j++)
			chosen[in_burst[j]->function - 1]++;
	}
}

Test(bursts, a_function_is_in_more_until_it_has_had_two)
{
	unsigned chosen[FUNCTIONS] = { 0 }, later[FUNCTIONS] = { 0 };

	begin();
	count_choices(3000, 1, chosen);
	cr_expect(gt(uint, chosen[0], chosen[1] * EAGERNESS * 4 / 5));
	cr_expect(lt(uint, chosen[0], chosen[1] * EAGERNESS * 5 / 4));
	cr_expect(gt(uint, chosen[1], 20));
	count_choices(3000, BURSTS_LEAST, later);
	cr_expect(gt(uint, later[0], later[1] * 4 / 5));
	cr_expect(lt(uint, later[0], later[1] * 5 / 4));
	/* All bursts together cost the same. */
	cr_expect(gt(uint, later[1], 2 * chosen[1]));
}

/* In a burst, the program does three quarters of what it does else. */
Test(bursts, the_pace_of_the_program_in_them_is_known)
{
	begin();
	for (unsigned i = 0; i < 20000; i++) {
		counted += is_in_burst() ? 750 : 1000;
		sample(0);
	}
	cr_expect(gt(u64, meta.burst_pace, SHIM_PACE_ONE * 74 / 100));
	cr_expect(lt(u64, meta.burst_pace, SHIM_PACE_ONE * 76 / 100));
	cr_expect(gt(u32, meta.burst_precision, 1000));
	bursts_forked();
	begin();
	for (unsigned i = 0; i < 100; i++)
		sample(0);
	cr_expect(eq(u32, meta.burst_pace, SHIM_PACE_ONE * 31 / 32));
}

Test(bursts, another_thread_ends_a_burst_only_if_its_own_sleeps)
{
	static struct tree other = { .life = 2 };

	begin();
	while (!is_in_burst())
		sample(1);
	moment.tree = &other;
	for (unsigned i = 1; i < 100; i++) {
		sample(1);
		cr_assert(is_in_burst());
	}
	clock_ns = FORGET_AFTER_NS;
	sample(1);
	cr_expect(not(is_in_burst()));
	check_off();
	cr_expect(zero(u64, meta.bursts));
}

Test(bursts, a_child_has_no_burst)
{
	begin();
	while (!is_of_hooks())
		sample(1);
	bursts_forked();
	cr_expect(not(is_in_burst()));
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		cr_expect(
			eq(u32, throttled_state(&functions[i]), THROTTLED_OFF));
		cr_expect(not(is_switched_on[i]));
	}
}

Test(bursts, square_roots_are_exact)
{
	for (uint64_t i = 0; i < 1 << 16; i++) {
		cr_assert(eq(u64, square_root(i * i), i));
		cr_assert(eq(u64, square_root(i * i + i), i));
		cr_assert(eq(u64, square_root(i * i + 2 * i), i));
	}
	for (unsigned bits = 16; bits < 32; bits++) {
		uint64_t root = (1ull << bits) + 12345;

		cr_expect(eq(u64, square_root(root * root), root));
		cr_expect(eq(u64, square_root(root * root - 1), root - 1));
	}
}
