/*
 * The measurement of what a call costs.  It calls the hooks as a program's function does,
 * so that they take their fast path.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <shim/builtin.h>
#include <shim/cpu.h>
#include <string.h>

static uint64_t clock_now;

static uint64_t read_clock(void)
{
	return clock_now;
}

#define shim_clock_read read_clock
#include "../../hooks/path/cost.c"

/* --- what it needs of the engine and of shim --- */

static bool clock_is_closed;
static unsigned entered, blocked;
static const void *open_site;

bool shim_clock_is_closed(void)
{
	return clock_is_closed;
}

uint64_t shim_signals_block(void)
{
	return blocked++;
}

void shim_signals_restore(uint64_t signals)
{
	cr_expect(eq(u64, signals, --blocked));
}

void node_widen(struct shim_extra_node *extra, uint64_t duration)
{
	(void)extra, (void)duration;
}

/* A call takes 5 units before the first reading of the clock and after the last one, and 3
 * between them. */
static void enter(shim_function function, const void *site)
{
	cr_assert(eq(u64, function, 1));
	cr_assert(eq(u64, tree_hot.cache[0]->function, 1));
	cr_assert(eq(ptr, (void *)open_site, NULL));
	cr_assert(eq(u32, blocked, 1));
	open_site = site;
	entered++;
	clock_now += 6;
}

static void leave(shim_function function, const void *site)
{
	cr_assert(eq(u64, function, 1));
	cr_assert(eq(ptr, (void *)site, (void *)open_site));
	cr_assert(ne(ptr, (void *)site, NULL));
	open_site = NULL;
	tree_hot.cache[0]->time += 3;
	clock_now += 2;
}

const shim_site_hook tree_hooks[4][2] = {
	[COUNTS] = { enter, leave },
	[COARSE] = { enter, leave },
	[EXACT] = { enter, leave },
	[TRACED] = { enter, leave },
};

/* --- the tests --- */

static struct shim_meta meta;

Test(cost, calls_have_the_cost_that_the_clock_tells)
{
	tree_mode = EXACT;
	tree_describe_cost(&meta);
	cr_expect(gt(u32, entered, 100));
	cr_expect(eq(u32, meta.cost_exact.inside, 3000));
	cr_expect(eq(u32, meta.cost_exact.outside, 5000));
	cr_expect(eq(u32, meta.cost_coarse.inside, 3000));
	cr_expect(eq(u32, meta.cost_coarse.outside, 5000));
	cr_expect(eq(u32, meta.has_self, 0));
	cr_expect(eq(u32, meta.is_cpu, 0));
}

Test(cost, hooks_that_read_a_coarse_clock_spend_no_time_between_its_readings)
{
	tree_mode = COARSE;
	tree_is_cpu = true;
	tree_describe_cost(&meta);
	cr_expect(eq(u32, meta.cost_exact.inside, 3000));
	cr_expect(eq(u32, meta.cost_exact.outside, 5000));
	cr_expect(eq(u32, meta.cost_coarse.inside, 0));
	cr_expect(eq(u32, meta.cost_coarse.outside, 8000));
	cr_expect(eq(u32, meta.has_self, 1));
	cr_expect(eq(u32, meta.is_cpu, 1));
}

Test(cost, the_thread_continues_where_it_was)
{
	static struct shim_node node;
	struct hot before;

	tree_hot.current = &node;
	tree_hot.last = 77;
	before = tree_hot;
	tree_mode = COARSE;
	tree_describe_cost(&meta);
	cr_expect(zero(int, memcmp(&before, &tree_hot, sizeof(before))));
}

Test(cost, a_child_that_may_not_read_the_clock_keeps_the_figures_of_its_parent)
{
	struct shim_meta child = { 0 };

	tree_mode = EXACT;
	tree_describe_cost(&meta);
	clock_is_closed = true;
	entered = 0;
	tree_describe_cost(&child);
	cr_expect(zero(u32, entered));
	cr_expect(eq(u32, child.cost_exact.inside, 3000));
	cr_expect(eq(u32, child.cost_exact.outside, 5000));
}
