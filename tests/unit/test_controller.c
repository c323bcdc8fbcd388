/*
 * The controller of the budget: the test has the tree, its calls and the functions that
 * are off.  The budget is 10 percent; a call of the hooks costs 6 ns, a counted one 1 ns.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <criterion/parameterized.h>

#include "../../hooks/budget/controller.c"
#include "../../hooks/budget/functions.c"

#define FUNCTIONS 5
#define OUTER	  100 /* the function that calls them */

#define MS 1000000ull
#define SAMPLES \
	1000 /* in which time most tests spend the budget; one is a millisecond */
#define PERCENT 10

/* What may be spent in SAMPLES: on all that samples find, and of that on hooks. */
#define SEEN_PART (SEEN_PERCENT + PERCENT * (100 - SEEN_PERCENT) / 100)
#define SEEN_NS	  (SAMPLES * MS / 10000 * PERCENT * SEEN_PART)
#define HOOKS_NS  (SEEN_NS / 100 * HOOKS_PERCENT)
/* The calls of hooks and those that are counted that may be, and that may stay when
 * functions are switched. */
#define HOOKS_CALLS   (HOOKS_NS / 6)
#define HOOKS_STAY    (HOOKS_CALLS / 3)
#define COUNTED_PART  (COUNTED_PERCENT + PERCENT * 4 / 5)
#define COUNTED_CALLS (SAMPLES * MS / 10000 * PERCENT * COUNTED_PART)
#define COUNTED_STAY  (COUNTED_CALLS * 2 / 3)

/* --- what it needs of the engine and of shim --- */

static struct throttled
	switched[FUNCTIONS]; /* in the order of their switching off */
static uint64_t counted[FUNCTIONS];
static bool is_uncounted[FUNCTIONS];
static unsigned epochs; /* switchings */

uint32_t throttled_count;
uint64_t budget_samples_counters;
struct tree *trees;

struct throttled *throttled_get(uint32_t number)
{
	cr_assert(lt(u32, number, throttled_count));
	return &switched[number];
}

struct throttled *throttled_search(uint64_t address)
{
	for (uint32_t i = 0; i < throttled_count; i++)
		if (switched[i].function == address)
			return &switched[i];
	return NULL;
}

/* Objects go while an entry is made. */
static uint32_t unloaded, released;
static bool is_unloading;

struct throttled *throttled_add(uint64_t function, uint32_t counter)
{
	struct throttled *throttled = &switched[throttled_count++];

	cr_assert(le(u32, throttled_count, FUNCTIONS));
	unloaded += is_unloading;
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
	epochs++;
}

uint64_t throttled_counted(const struct throttled *throttled)
{
	return counted[throttled - switched];
}

uint64_t throttled_sum(uint32_t counter)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < throttled_count; i++)
		if (switched[i].counter && switched[i].counter <= counter)
			sum += counted[i];
	return sum;
}

uint64_t throttled_sum_in(const struct tree *of, uint32_t counter)
{
	(void)of;
	return throttled_sum(counter);
}

void throttled_uncount(struct throttled **list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		list[i]->is_counted = false;
		is_uncounted[list[i] - switched] = true;
	}
}

uint32_t throttled_unloads(void)
{
	return unloaded;
}

void throttled_release(struct throttled *throttled)
{
	throttled->is_counted = false;
	throttled->state = THROTTLED_GONE;
	released++;
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

uint64_t bursts_counted(void)
{
	return 0;
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
	.sample_period_ns = MS,
	.clock_hz = 1000 * MS,
	.cost_coarse = { .inside = 1500, .outside = 2500 },
};

struct shim_meta *shim_record_meta(void)
{
	return &meta;
}

/* --- a decision: functions 1, 2, ... --- */

static struct tree tree;
static struct moment moment = { .tree = &tree, .meta = &meta };

/* They have these calls of hooks. */
static void add_calls(unsigned count, const uint64_t *calls)
{
	for (unsigned i = 0; i < count; i++)
		add(functions_count + 1)->calls = calls[i];
}

/* A function that is counted already, since the last look @calls times.  Samples confirm
 * the cost. */
static void add_counted(uint64_t calls)
{
	struct function *function = add(functions_count + 1);

	function->calls = calls;
	function->is_throttled = true;
	moment.counters += calls / MS;
	counted[throttled_count] = calls;
	throttled_add(function->address, ++last_counter);
}

static bool decides(void)
{
	controller_percent = PERCENT;
	moment.weight = SAMPLES;
	return decide(&moment);
}

/* Bit i: function i + 1 is off. */
static unsigned off(void)
{
	unsigned found = 0;

	for (uint32_t i = 0; i < throttled_count; i++)
		found |= 1u << (switched[i].function - 1);
	return found;
}

static bool is_any_uncounted(void)
{
	bool any = false;

	for (uint32_t i = 0; i < FUNCTIONS; i++)
		any |= is_uncounted[i];
	return any;
}

/* Half of what hooks may cost, half of what counting may, and what is left of the budget. */
#define HALF_HOOKS   (HOOKS_CALLS / 2)
#define HALF_COUNTED (COUNTED_CALLS / 2 / MS * MS) /* whole samples */
#define LEFT_NS	     (SEEN_NS - HALF_HOOKS * 6 - HALF_COUNTED)

static const struct {
	uint64_t hooks, counted; /* calls */
	uint64_t own_ns;
	bool is_over;
} budgets[] = {
	{ HALF_HOOKS, HALF_COUNTED, LEFT_NS, false },
	{ HALF_HOOKS, HALF_COUNTED, LEFT_NS + 1, true },
	{ HALF_HOOKS, HALF_COUNTED + MS, LEFT_NS, true },
	{ HALF_HOOKS + 1000, HALF_COUNTED, LEFT_NS, true },
	{ HOOKS_CALLS, HALF_COUNTED, 0, false },
	{ HOOKS_CALLS + 100, HALF_COUNTED, 0, true },
};

#define BUDGETS (sizeof(budgets) / sizeof(*budgets))

ParameterizedTestParameters(controller, functions_go_off_beyond_the_budget)
{
	static int rows[BUDGETS];

	for (unsigned i = 0; i < BUDGETS; i++)
		rows[i] = (int)i;
	return cr_make_param_array(int, rows, BUDGETS);
}

/* Function 1 is counted; the other two have hooks. */
ParameterizedTest(int *row, controller, functions_go_off_beyond_the_budget)
{
	uint64_t hooks = budgets[*row].hooks;
	const uint64_t calls[] = { hooks / 2, hooks - hooks / 2 };
	bool is_over = budgets[*row].is_over;

	meta.own_ns = budgets[*row].own_ns;
	add_counted(budgets[*row].counted);
	add_calls(2, calls);
	cr_expect(eq(int, decides(), is_over), "%d", *row);
	cr_expect(eq(uint, epochs, is_over), "%d", *row);
	cr_expect(eq(int, (off() & 6) != 0, is_over), "%d", *row);
	cr_expect(not(is_any_uncounted()), "%d", *row);
}

/* The third function would be too much.  Its calls begin with the same bit as those of the
 * first two, but not with the same three. */
Test(controller, functions_that_are_called_more_go_first)
{
	const uint64_t calls[] = { HOOKS_STAY * 34 / 100, HOOKS_STAY * 34 / 100,
				   HOOKS_STAY * 43 / 100, HOOKS_STAY * 55 / 100,
				   HOOKS_STAY * 240 / 100 };

	add_calls(5, calls);
	cr_expect(decides());
	cr_expect(eq(uint, off(), 4 | 8 | 16));
	for (uint32_t i = 0; i < 3; i++) {
		cr_expect(eq(u64, switched[i].calls, calls[i + 2]));
		cr_expect(eq(u64, switched[i].ns, SAMPLES * MS));
		cr_expect(switched[i].is_counted);
	}
	cr_expect(not(functions[2].is_chosen));
	cr_expect(functions[2].is_throttled);
}

Test(controller, functions_stay_on_whose_object_may_have_gone_meanwhile)
{
	const uint64_t calls[] = { HOOKS_CALLS, HOOKS_CALLS };

	add_calls(2, calls);
	is_unloading = true;
	cr_expect(not(decides()));
	cr_expect(eq(u32, released, throttled_count));
	cr_expect(gt(u32, released, 0));
	cr_expect(zero(uint, epochs));
	is_unloading = false;
	unloads = unloaded;
	cr_expect(decides());
	cr_expect(gt(uint, epochs, 0));
}

Test(controller, a_caller_stays_where_a_leaf_with_as_many_calls_goes)
{
	const uint64_t calls[] = { HOOKS_STAY * 2 / 3, HOOKS_STAY * 2 / 3,
				   HOOKS_CALLS };

	add_calls(3, calls);
	functions[0].has_callees = true;
	cr_expect(decides());
	cr_expect(eq(uint, off(), 2 | 4));
}

Test(controller, outermost_and_rare_functions_stay)
{
	const uint64_t calls[] = { HOOKS_CALLS * 2, CALLS_LEAST - 1,
				   CALLS_LEAST, HOOKS_CALLS };

	add_calls(4, calls);
	functions[0].is_outermost = true;
	functions[3].before = 100;
	cr_expect(decides());
	cr_expect(eq(uint, off(), 4 | 8));
	cr_expect(eq(u64, switched[1].calls, HOOKS_CALLS - 100));
}

Test(controller, counting_that_is_dear_ends)
{
	add_counted(COUNTED_CALLS * 2);
	add_counted(COUNTED_STAY * 2 / 3);
	add_counted(1000);
	cr_expect(decides());
	cr_expect(is_uncounted[0]);
	cr_expect(not(is_uncounted[1]));
	cr_expect(not(is_uncounted[2]));
	cr_expect(eq(u64, switched[0].calls, COUNTED_CALLS * 2));
	cr_expect(zero(uint, epochs));
}

Test(controller, no_function_goes_off_while_costs_are_unknown)
{
	const uint64_t calls[] = { HOOKS_CALLS * 10, HOOKS_CALLS * 10 };

	meta.clock_hz = 0;
	meta.own_ns = SEEN_NS * 2;
	add_calls(2, calls);
	cr_expect(not(decides()));
	cr_expect(zero(uint, off()));
}

/* --- a run: OUTER calls the other functions --- */

static struct shim_node nodes[FUNCTIONS], outer, root;
static uint64_t counted_ns, hooks_ns;

static void add_chunk(struct shim_node *first, size_t count)
{
	tree.chunks[tree.chunk_count++] = (struct chunk){
		.first = (uint64_t)first,
		.next = (uint64_t)(first + count),
		.limit = (uint64_t)(first + count),
	};
}

static void begin(void)
{
	controller_percent = PERCENT;
	root.function = SHIM_NODE_SPECIAL;
	outer = (struct shim_node){ .function = OUTER,
				    .parent = (uint64_t)&root,
				    .calls = 1 };
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		nodes[i] = (struct shim_node){ .function = i + 1,
					       .parent = (uint64_t)&outer };
	add_chunk(&root, 1);
	add_chunk(&outer, 1);
	add_chunk(nodes, FUNCTIONS);
	trees = &tree;
}

/* @samples samples, in whose time all functions together have @calls more calls. */
static void run(uint64_t samples, uint64_t calls)
{
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		const struct throttled *of = throttled_search(i + 1);

		if (of && of->is_counted) {
			counted[of - switched] += calls / FUNCTIONS;
			counted_ns += calls / FUNCTIONS;
		} else if (!of) {
			nodes[i].calls += calls / FUNCTIONS;
			hooks_ns += calls / FUNCTIONS * 6;
		}
	}
	/* As many samples as tell the costs that are expected. */
	moment.counters = counted_ns / meta.sample_period_ns;
	moment.hooks = hooks_ns / meta.sample_period_ns;
	moment.weight += samples;
	controller_look(&moment);
}

/* More than the hooks' part, so all functions are counted from then on. */
static void run_until_counted(void)
{
	run(SAMPLES, HOOKS_CALLS * 5);
	cr_assert(eq(u32, throttled_count, FUNCTIONS));
}

/* --- nodes of all kinds --- */

static uint64_t memory[8192] __attribute__((aligned(64)));
static uint64_t used; /* words */
static unsigned visits;

/* A node whose other words look like functions. */
static void add_node(uint64_t function, uint64_t size)
{
	for (uint64_t i = 0; i < size / 8; i++)
		memory[used + i] = 1;
	memory[used] = function;
	used += size / 8;
}

static void count_visit(struct tree *of, struct shim_node *node)
{
	(void)of;
	cr_expect(eq(u64, node->function, OUTER));
	visits++;
}

Test(controller, only_functions_are_visited_among_nodes_of_all_kinds)
{
	static const struct {
		uint64_t function, size;
	} kinds[] = {
		{ SHIM_NODE_THREAD | 1, sizeof(struct shim_thread_node) },
		{ SHIM_NODE_EXTRA, sizeof(struct shim_extra_node) },
		{ SHIM_NODE_GROUP | 1, sizeof(struct shim_group_node) },
		{ SHIM_NODE_MEMORY, sizeof(struct shim_memory_node) },
		{ SHIM_NODE_HEAP, sizeof(struct shim_heap_node) },
		{ SHIM_NODE_LIVES, sizeof(struct shim_lives_node) },
		{ SHIM_NODE_LOCK, sizeof(struct shim_lock_node) },
		{ SHIM_NODE_THROW, sizeof(struct shim_throw_node) },
		{ SHIM_NODE_POINTS, sizeof(struct shim_points_node) },
		{ SHIM_NODE_SNAPSHOT | 1, sizeof(struct shim_snapshot_node) },
		{ SHIM_NODE_ALIVE | 1, sizeof(struct shim_alive_node) },
		{ SHIM_NODE_SAMPLED, sizeof(struct shim_sampled_node) },
		{ SHIM_NODE_THROTTLED, sizeof(struct shim_throttled_node) },
		{ SHIM_NODE_COUNTERS, sizeof(struct shim_counters_node) },
		{ SHIM_NODE_CODE, sizeof(struct shim_code_node) },
	};
	const size_t count = sizeof(kinds) / sizeof(*kinds);
	struct shim_type_node *type;

	for (size_t i = 0; i < count; i++) {
		add_node(kinds[i].function, kinds[i].size);
		add_node(OUTER, sizeof(struct shim_node));
	}
	type = (struct shim_type_node *)&memory[used];
	add_node(SHIM_NODE_TYPE, 192);
	type->text_size = 192 - sizeof(*type) - 10;
	add_node(OUTER, sizeof(struct shim_node));
	cr_assert(le(sz, used, sizeof(memory) / sizeof(*memory)));
	add_chunk((struct shim_node *)memory,
		  used * sizeof(*memory) / sizeof(struct shim_node));
	trees = &tree;
	functions_each_node(count_visit);
	cr_expect(eq(uint, visits, count + 1));
}

Test(controller, functions_stay_on_within_the_budget, .init = begin)
{
	run(SAMPLES, HOOKS_CALLS * 9 / 10);
	run(SAMPLES, HOOKS_CALLS * 9 / 10);
	run(SAMPLES, HOOKS_CALLS / 2);
	cr_expect(zero(u32, throttled_count));
}

Test(controller, functions_with_too_many_calls_are_counted, .init = begin)
{
	outer.calls = HOOKS_CALLS;
	run_until_counted();
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		cr_expect(switched[i].is_counted);
		cr_expect(eq(u64, switched[i].function, i + 1));
		cr_expect(eq(u64, switched[i].calls,
			     HOOKS_CALLS * 5 / FUNCTIONS));
		cr_expect(eq(u64, switched[i].ns, SAMPLES * MS));
		cr_expect(eq(u32, switched[i].counter, i + 1));
		cr_expect(eq(u64, nodes[i].function & SHIM_NODE_EXACT,
			     SHIM_NODE_EXACT));
	}
	/* The function of the outermost call stays. */
	cr_expect(zero(u64, outer.function & SHIM_NODE_EXACT));
	cr_expect(eq(u64, meta.throttled, FUNCTIONS));
}

Test(controller, counting_goes_on_while_it_costs_its_part, .init = begin)
{
	run_until_counted();
	for (unsigned i = 0; i < 10; i++) {
		run(SAMPLES, COUNTED_CALLS * 9 / 10);
		cr_assert(not(is_any_uncounted()));
	}
}

Test(controller, counting_ends_if_it_costs_more_over_the_whole_run_and_now,
     .init = begin)
{
	run_until_counted();
	run(SAMPLES, COUNTED_CALLS * 4);
	cr_expect(is_any_uncounted());
}

Test(controller, a_short_phase_with_many_calls_does_not_end_the_counting,
     .init = begin)
{
	run_until_counted();
	run(SAMPLES * 10, COUNTED_CALLS / 50);
	run(SAMPLES / 10, COUNTED_CALLS / 2);
	cr_expect(not(is_any_uncounted()));
	run(SAMPLES / 10, COUNTED_CALLS / 2);
	cr_expect(not(is_any_uncounted()));
}

Test(controller, counting_that_was_dear_before_does_not_end_now, .init = begin)
{
	run_until_counted();
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		counted[i] += COUNTED_CALLS * 3;
	counted_ns += FUNCTIONS * COUNTED_CALLS * 3;
	last_sum = throttled_sum(last_counter);
	for (uint32_t i = 0; i < functions_count; i++)
		functions[i].calls += functions[i].is_throttled *
				      COUNTED_CALLS * 3;
	run(SAMPLES, COUNTED_CALLS * 9 / 10);
	cr_expect(not(is_any_uncounted()));
}

/* Bursts have the other counters. */
Test(controller, functions_that_find_no_counter_are_off_without_one,
     .init = begin)
{
	last_counter = BURST_COUNTERS - 3;
	run_until_counted();
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		cr_expect(eq(int, switched[i].is_counted, i < 2));
		cr_expect(eq(u32, switched[i].counter,
			     i < 2 ? BURST_COUNTERS - 2 + i : 0));
	}
	cr_expect(eq(u32, last_counter, BURST_COUNTERS - 1));
}
