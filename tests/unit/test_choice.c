/*
 * Which functions the controller of the budget switches off.  A call of the hooks costs
 * 6 ns, a counted one 1 ns; a second has passed, of which 10 percent may be spent.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "../../hooks/budget/controller.c"

#define FUNCTIONS 8
#define MS	  1000000u

/* --- what it needs of the others --- */

static char mapped[1 << 20] __attribute__((aligned(16)));
static size_t mapped_size;
static struct throttled throttled[FUNCTIONS];
static uint64_t counted[FUNCTIONS]; /* calls */
static unsigned uncounted, epochs;  /* functions; switchings */

uint32_t throttled_count;
struct tree *trees;
struct shim_node tree_no_call;
uint64_t budget_samples_counters;

void *shim_memory_map(size_t size)
{
	size_t at = mapped_size;

	mapped_size += (size + 15) & ~15ul;
	cr_assert(le(sz, mapped_size, sizeof(mapped)));
	return mapped + at;
}

void shim_memory_discard(void *memory, size_t size)
{
	(void)memory, (void)size;
}

uint64_t shim_thread_time_ns(void)
{
	return 0;
}

struct shim_meta *shim_record_meta(void)
{
	return NULL;
}

struct tree *tree_get(uintptr_t sp)
{
	(void)sp;
	return NULL;
}

void *tree_take(struct tree *tree, size_t size)
{
	(void)tree, (void)size;
	return NULL;
}

struct throttled *throttled_get(uint32_t number)
{
	return &throttled[number];
}

struct throttled *throttled_search(uint64_t address)
{
	for (uint32_t i = 0; i < throttled_count; i++)
		if (throttled[i].function == address)
			return &throttled[i];
	return NULL;
}

struct throttled *throttled_add(uint64_t function, uint32_t counter)
{
	struct throttled *added = &throttled[throttled_count++];

	added->function = function;
	added->counter = counter;
	added->is_counted = counter != 0;
	return added;
}

void throttled_add_place(struct throttled *of, struct tree *tree,
			 struct shim_node *node)
{
	(void)of, (void)tree, (void)node;
}

void throttled_end_epoch(void)
{
	epochs++;
}

void throttled_uncount(struct throttled *of)
{
	of->is_counted = false;
	uncounted++;
}

uint64_t throttled_counted(const struct throttled *of)
{
	return counted[of - throttled];
}

uint64_t throttled_sum(uint32_t counter)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < counter; i++)
		sum += counted[i];
	return sum;
}

uint64_t throttled_sum_in(const struct tree *of, uint32_t counter)
{
	(void)of;
	return throttled_sum(counter);
}

void throttled_release(struct throttled *of)
{
	(void)of;
}

const struct tree *bursts_tree(void)
{
	return NULL;
}

/* --- the functions --- */

static struct shim_meta meta;
static struct moment moment = { .meta = &meta, .weight = 1000 };

static void begin(void)
{
	controller_percent = 10;
	meta.clock_hz = 1000 * MS;
	meta.sample_period_ns = MS;
	meta.cost_coarse = (struct shim_cost){ 1500, 2500 };
}

/* Functions 1, 2, ... with these calls of hooks. */
static void add(unsigned count, const uint64_t *calls)
{
	for (unsigned i = 0; i < count; i++)
		make_counter(counter_count + 1)->calls = calls[i];
}

/* A function that is counted already, since the last look @calls times.  Samples confirm
 * the cost. */
static void add_counted(uint64_t calls)
{
	struct counter *counter = make_counter(counter_count + 1);

	counter->calls = calls;
	counter->is_throttled = true;
	moment.counters += calls / MS;
	counted[throttled_count] = calls;
	throttled_add(counter->function, ++last_counter);
}

/* Bit i: function i + 1 is off. */
static unsigned off(void)
{
	unsigned found = 0;

	for (uint32_t i = 0; i < throttled_count; i++)
		found |= 1u << (throttled[i].function - 1);
	return found;
}

static bool goes_off(uint64_t hook_calls_now, uint64_t counted_calls,
		     uint64_t own_ns)
{
	const uint64_t calls[] = { hook_calls_now, 1000000 };

	meta.own_ns = own_ns;
	add_counted(counted_calls);
	add(2, calls);
	return decide(&moment);
}

/* At most 100 ms for all, and 30 for hooks; function 1 is counted. */
static const struct {
	uint64_t hooks, counted, own_ns;
	bool goes_off;
} cases[] = {
	{ 3000000, 16000000, 60 * MS, false },
	{ 3000000, 16000000, 60 * MS + 1, true },
	{ 3000000, 17000000, 60 * MS, true },
	{ 3001000, 16000000, 60 * MS, true },
	{ 4000000, 10000000, 0, false },
	{ 4000200, 10000000, 0, true },
};

Test(choice, functions_go_off_beyond_the_budget, .init = begin)
{
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool is_over = cases[i].goes_off;

		counter_count = throttled_count = last_counter = epochs = 0;
		moment.counters = 0;
		counters = NULL;
		counter_room = 0;
		cr_expect(eq(int,
			     goes_off(cases[i].hooks, cases[i].counted,
				      cases[i].own_ns),
			     is_over),
			  "%u", i);
		cr_expect(eq(uint, epochs, is_over), "%u", i);
		cr_expect(eq(int, (off() & 6) != 0, is_over), "%u", i);
	}
}

/* 1,666,666 calls may stay.  The calls of the third and fourth function begin with the
 * same bit, but not the same three. */
Test(choice, functions_that_are_called_more_go_first, .init = begin)
{
	const uint64_t calls[] = { 550000, 560000, 700000, 800000, 4000000 };

	add(5, calls);
	cr_expect(decide(&moment));
	cr_expect(eq(uint, off(), 4 | 8 | 16));
	for (uint32_t i = 0; i < 3; i++) {
		cr_expect(eq(u64, throttled[i].calls, calls[i + 2]));
		cr_expect(eq(u64, throttled[i].ns, 1000 * MS));
		cr_expect(throttled[i].is_counted);
	}
	cr_expect(not(counters[2].is_chosen));
	cr_expect(counters[2].is_throttled);
}

Test(choice, a_caller_stays_where_a_leaf_with_as_many_calls_goes, .init = begin)
{
	const uint64_t calls[] = { 1100000, 1100000, 5000000 };

	add(3, calls);
	counters[0].has_callees = true;
	cr_expect(decide(&moment));
	cr_expect(eq(uint, off(), 2 | 4));
}

Test(choice, outermost_and_rare_functions_stay, .init = begin)
{
	const uint64_t calls[] = { 5000000, 63, 64, 3000000 };

	add(4, calls);
	counters[0].is_outermost = true;
	counters[3].before = 100;
	cr_expect(decide(&moment));
	cr_expect(eq(uint, off(), 4 | 8));
	cr_expect(eq(u64, throttled[1].calls, 3000000 - 100));
}

/* 45 ms of counters may be, and 50 samples at the begin. */
Test(choice, counting_that_is_dear_ends, .init = begin)
{
	add_counted(50000000);
	add_counted(20000000);
	add_counted(1000);
	cr_expect(decide(&moment));
	cr_expect(eq(uint, uncounted, 1));
	cr_expect(not(throttled[0].is_counted));
	cr_expect(throttled[1].is_counted);
	cr_expect(throttled[2].is_counted);
	cr_expect(eq(u64, throttled[0].calls, 50000000));
	cr_expect(eq(uint, epochs, 0));
}

Test(choice, no_function_goes_off_while_costs_are_unknown, .init = begin)
{
	const uint64_t calls[] = { 90000000, 90000000 };

	meta.clock_hz = 0;
	add(2, calls);
	cr_expect(not(decide(&moment)));
	cr_expect(zero(uint, off()));
}
