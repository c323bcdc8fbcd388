/*
 * Times that exclude the waiting of threads.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <shim/builtin.h>
#include <shim/cpu.h>

static uint64_t clock_now = 1000000, cpu_now = 5000;

static uint64_t read_clock(void)
{
	return clock_now;
}

#define shim_clock_read read_clock
#include "../../hooks/path/cpu_time.c"

bool shim_clock_cpu(uint64_t *time)
{
	*time = cpu_now;
	return true;
}

static struct shim_meta meta;

struct shim_meta *shim_record_meta(void)
{
	return &meta;
}

#define LONG 6400 /* from the last tick to this one */

static struct tree tree;
static struct shim_node root = { .frame = ~0ull }, nodes[4];

/* The thread has calls that began at @starts, outermost first. */
static void open_calls(const uint64_t starts[4])
{
	for (int i = 0; i < 4; i++)
		nodes[i] = (struct shim_node){
			.parent = (uint64_t)(i ? &nodes[i - 1] : &root),
			.start = starts[i],
		};
	tree.computed = (int64_t)cpu_now;
	tree_hot.tree = &tree;
	tree_hot.current = &nodes[3];
}

/* (The last one by a signal handler, after the tick.) */
Test(cpu_time, waiting_moves_the_starts_of_open_calls_at_most_to_the_tick)
{
	const uint64_t tick = clock_now, last = tick - LONG;
	const uint64_t starts[] = { last - 2000, last, tick - 100, tick + 50 };

	open_calls(starts);
	cpu_now += 400;
	cr_expect(eq(u64, cpu_leave_out_waiting(last, tick), LONG - 400));
	cr_expect(eq(u64, nodes[0].start, starts[0] + LONG - 400));
	cr_expect(eq(u64, nodes[1].start, starts[1] + LONG - 400));
	cr_expect(eq(u64, nodes[2].start, tick));
	cr_expect(eq(u64, nodes[3].start, starts[3]));
	cr_expect(zero(u64, root.start));
	cr_expect(eq(u64, meta.waited, LONG - 400));
	/* The time is not left out twice. */
	cr_expect(eq(u64, cpu_leave_out_waiting(tick, tick + 1000), 1000));
	cr_expect(eq(u64, nodes[0].start, starts[0] + LONG + 600));
}

Test(cpu_time, a_thread_that_has_computed_waits_for_nothing)
{
	const uint64_t tick = clock_now, last = tick - LONG;
	const uint64_t starts[] = { last - 2000, last, tick - 100, tick + 50 };

	for (uint64_t less = 0; less <= LONG / LEAST_SHARE; less++) {
		open_calls(starts);
		cpu_now += LONG - less;
		cr_expect(zero(u64, cpu_leave_out_waiting(last, tick)));
		for (int i = 0; i < 4; i++)
			cr_expect(eq(u64, nodes[i].start, starts[i]));
	}
	open_calls(starts);
	cpu_now += LONG - LONG / LEAST_SHARE - 1;
	cr_expect(gt(u64, cpu_leave_out_waiting(last, tick), 0));
}

/* After a tick it may have waited for long, but computed at most since the tick. */
Test(cpu_time, what_a_thread_computed_before_a_tick_hides_no_later_waiting)
{
	const uint64_t tick = clock_now, last = tick - LONG;
	const uint64_t starts[4] = { last, last, last, last };

	open_calls(starts);
	cpu_now += 10 * LONG;
	clock_now += 70;
	cr_expect(zero(u64, cpu_leave_out_waiting(last, tick)));
	cr_expect(eq(u64, cpu_leave_out_waiting(tick, tick + LONG), LONG - 70));
}

Test(cpu_time, calls_of_a_stack_that_is_left_get_no_time_meanwhile)
{
	const uint64_t starts[4] = { 100, 200, 300, 0 };

	open_calls(starts);
	tree_hot.clock = 1000;
	cpu_leave_stack(&nodes[3], &nodes[0]);
	tree_hot.clock = 5000;
	cpu_come_back(&nodes[3], &nodes[0]);
	cr_expect(eq(u64, nodes[0].start, 100));
	cr_expect(eq(u64, nodes[1].start, 5000));
	cr_expect(eq(u64, nodes[3].start, 5000));
	cr_expect(zero(u64, nodes[0].time));
	cr_expect(eq(u64, nodes[1].time, 800));
	cr_expect(eq(u64, nodes[2].time, 700));
	cr_expect(zero(u64, nodes[3].time));
}
