/*
 * The controller of the budget: the test has the tree, its calls and the functions that
 * are off.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "../../hooks/budget/controller.c"

/* --- what it needs of the engine and of shim --- */

#define FUNCTIONS 4

static struct throttled
	functions[FUNCTIONS]; /* in the order of their switching off */
static uint64_t counted[FUNCTIONS];
static bool is_uncounted[FUNCTIONS];

uint32_t throttled_count;
uint64_t budget_samples_counters;
struct tree *trees;

struct throttled *throttled_get(uint32_t number)
{
	cr_assert(lt(u32, number, throttled_count));
	return &functions[number];
}

struct throttled *throttled_search(uint64_t address)
{
	for (uint32_t i = 0; i < throttled_count; i++)
		if (functions[i].function == address)
			return &functions[i];
	return NULL;
}

struct throttled *throttled_add(uint64_t function, uint32_t counter)
{
	struct throttled *throttled = &functions[throttled_count++];

	cr_assert(le(u32, throttled_count, FUNCTIONS));
	*throttled = (struct throttled){
		.function = function,
		.state = THROTTLED_OFF,
		.counter = counter,
		.is_counted = counter != 0,
	};
	return throttled;
}

void throttled_add_place(struct throttled *throttled, struct tree *tree,
			 struct shim_node *node)
{
	(void)throttled, (void)tree;
	node->function |= SHIM_NODE_EXACT;
}

void throttled_end_epoch(void)
{
}

uint64_t throttled_counted(const struct throttled *throttled)
{
	return counted[throttled - functions];
}

uint64_t throttled_sum(uint32_t counter)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < throttled_count; i++)
		if (functions[i].counter && functions[i].counter <= counter)
			sum += counted[i];
	return sum;
}

uint64_t throttled_sum_in(const struct tree *of, uint32_t counter)
{
	(void)of;
	return throttled_sum(counter);
}

void throttled_uncount(struct throttled *throttled)
{
	throttled->is_counted = false;
	is_uncounted[throttled - functions] = true;
}

void throttled_release(struct throttled *throttled)
{
	(void)throttled;
}

static void *take(size_t size)
{
	static uint64_t memory[1 << 16];
	static size_t used;
	void *taken = &memory[used];

	used += (size + 7) / 8;
	cr_assert(le(sz, used, sizeof(memory) / sizeof(*memory)));
	return taken;
}

void *tree_take(struct tree *tree, size_t size)
{
	(void)tree;
	return take(size);
}

struct tree *tree_get(uintptr_t sp)
{
	(void)sp;
	return trees;
}

const struct tree *bursts_tree(void)
{
	return NULL;
}

void *shim_memory_map(size_t size)
{
	return take(size);
}

void shim_memory_discard(void *memory, size_t size)
{
	(void)memory, (void)size;
}

uint64_t shim_thread_time_ns(void)
{
	return 0;
}

static struct shim_meta meta = {
	.sample_period_ns = 1000000,
	.clock_hz = 1000000000,
	.cost_coarse = { .inside = 3000, .outside = 3000 },
};

struct shim_meta *shim_record_meta(void)
{
	return &meta;
}

/* --- the run: "outer" calls the other functions --- */

static struct shim_node nodes[FUNCTIONS + 2];
static struct tree tree;
static uint64_t counted_ns, hooks_ns;
static struct moment moment = { .tree = &tree, .meta = &meta };

static void begin(void)
{
	controller_percent = 10;
	nodes[0] = (struct shim_node){ .function = SHIM_NODE_SPECIAL };
	for (uint64_t i = 1; i < FUNCTIONS + 2; i++)
		nodes[i] = (struct shim_node){
			.function = i * 0x1000,
			.parent = (uint64_t)&nodes[i > 1],
			.calls = i == 1,
		};
	tree.chunks[0].first = (uint64_t)nodes;
	tree.chunks[0].next = tree.chunks[0].limit = (uint64_t)(nodes +
								FUNCTIONS + 2);
	tree.chunk_count = 1;
	trees = &tree;
	controller_look(&moment);
}

/* @samples samples, in whose time each function has @calls more calls. */
static void run(uint64_t samples, uint64_t calls)
{
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		const struct throttled *of = throttled_search((i + 2) * 0x1000);

		if (of && of->is_counted) {
			counted[of - functions] += calls;
			counted_ns += calls * 3 / 2;
		} else if (!of) {
			nodes[i + 2].calls += calls;
			hooks_ns += calls * 9;
		}
	}
	/* As many samples as tell the costs that are expected. */
	moment.counters = counted_ns / meta.sample_period_ns;
	moment.hooks = hooks_ns / meta.sample_period_ns;
	moment.weight += samples;
	controller_look(&moment);
}

/* In 1000 samples, the budget is 100 ms, of which hooks get 30 ms.  The hooks of a call
 * cost 9 ns, and a counter 1.5 ns. */
Test(controller, functions_stay_on_within_the_budget)
{
	begin();
	run(1000, 800000);
	run(1000, 800000);
	run(1000, 500000);
	cr_expect(zero(u32, throttled_count));
}

Test(controller, functions_with_too_many_calls_are_counted)
{
	begin();
	run(1000, 5000000);
	cr_assert(eq(u32, throttled_count, FUNCTIONS));
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		cr_expect(functions[i].is_counted);
		cr_expect(eq(u64, functions[i].function, (i + 2) * 0x1000));
		cr_expect(eq(u64, functions[i].calls, 5000000));
		cr_expect(eq(u64, functions[i].ns, 1000000000));
		cr_expect(eq(u32, functions[i].counter, i + 1));
		cr_expect(eq(u64, nodes[i + 2].function & SHIM_NODE_EXACT,
			     SHIM_NODE_EXACT));
	}
	/* The function of the outermost call stays. */
	cr_expect(zero(u64, nodes[1].function & SHIM_NODE_EXACT));
	cr_expect(eq(u64, meta.throttled, FUNCTIONS));
}

static bool is_any_uncounted(void)
{
	bool any = false;

	for (uint32_t i = 0; i < FUNCTIONS; i++)
		any |= is_uncounted[i];
	return any;
}

/* 45 % of the budget: 30 million calls in 1000 samples. */
Test(controller, counting_goes_on_while_it_costs_its_part)
{
	begin();
	for (unsigned i = 0; i < 10; i++) {
		run(1000, 7000000);
		cr_assert(not(is_any_uncounted()));
	}
}

Test(controller, counting_ends_if_it_costs_more_over_the_whole_run_and_now)
{
	begin();
	run(1000, 1500000);
	run(1000, 30000000);
	cr_expect(is_any_uncounted());
}

Test(controller, a_short_phase_with_many_calls_does_not_end_the_counting)
{
	begin();
	run(1000, 1500000);
	cr_assert(eq(u32, throttled_count, FUNCTIONS));
	run(10000, 100000);
	run(100, 3000000);
	cr_expect(not(is_any_uncounted()));
	run(100, 3000000);
	cr_expect(not(is_any_uncounted()));
}

Test(controller, counting_that_was_dear_before_does_not_end_now)
{
	begin();
	run(1000, 1500000);
	cr_assert(eq(u32, throttled_count, FUNCTIONS));
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		counted[i] += 100000000;
	counted_ns += FUNCTIONS * 150000000ull;
	last_sum = throttled_sum(last_counter);
	for (uint32_t i = 0; i < counter_count; i++)
		counters[i].calls += counters[i].is_throttled * 100000000ull;
	run(1000, 7000000);
	cr_expect(not(is_any_uncounted()));
}

/* Bursts have the other counters. */
Test(controller, functions_that_find_no_counter_are_off_without_one)
{
	begin();
	last_counter = BURST_COUNTERS - 3;
	run(1000, 5000000);
	cr_assert(eq(u32, throttled_count, FUNCTIONS));
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		cr_expect(eq(int, functions[i].is_counted, i < 2));
		cr_expect(eq(u32, functions[i].counter,
			     i < 2 ? BURST_COUNTERS - 2 + i : 0));
	}
	cr_expect(eq(u32, last_counter, BURST_COUNTERS - 1));
}
