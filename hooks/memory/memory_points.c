/*
 * Records live bytes over time.  The thread that allocates or releases after the next
 * point is due, by the coarse clock, records the point.  This needs no thread and no
 * timer: without allocations nothing changes.  Snapshots at a period work the same way.
 *
 * If the process is killed during a write, the half that is being written does not
 * count.
 */
#include "memory/memory.h"
#include "path/nodes.h"
#include "path/times.h"

#include <shim/banned.h>

#define NEVER UINT64_MAX

uint64_t memory_point_due = NEVER;

static struct shim_points_node *points;
static uint64_t next_point, next_snapshot; /* in clock units */
static uint64_t tick_units,
	tick_clock; /* the length of a tick, in both units */

void memory_points_start(struct tree *tree, uint64_t units, uint64_t clock)
{
	struct shim_points_node *made = tree_take(tree, sizeof(*made));

	if (!made)
		return;
	tick_units = units;
	tick_clock = clock;
	made->interval = clock;
	__atomic_store_n(&made->function, SHIM_NODE_POINTS, __ATOMIC_RELEASE);
	points = made;
	next_point = 0;
	next_snapshot = memory_snapshot_period ?
				shim_clock_of_coarse(*memory_tick) +
					memory_snapshot_period :
				NEVER;
	__atomic_store_n(&memory_point_due, 0, __ATOMIC_RELEASE);
}

void memory_points_forked(void)
{
	points = NULL;
	memory_point_due = NEVER;
}

static void keep_every_other(void)
{
	uint64_t from = points->active & 1, to = from ^ 1, kept = 0;

	for (uint64_t i = 0; i < SHIM_POINTS; i += 2)
		points->half[to][kept++] = points->half[from][i];
	points->count[to] = kept;
	points->interval *= 2;
	__atomic_store_n(&points->active, to, __ATOMIC_RELEASE);
}

/* The value of the tick when @distance, in clock units, has passed since @tick. */
static uint64_t tick_after(uint64_t tick, uint64_t distance)
{
	return tick + (uint64_t)((unsigned __int128)distance * tick_units /
				 tick_clock);
}

static void add_point(uint64_t clock, uint64_t live_bytes)
{
	uint64_t half = points->active & 1, count = points->count[half];

	if (count < SHIM_POINTS) {
		points->half[half][count] = (struct shim_point){ clock,
								 live_bytes };
		__atomic_store_n(&points->count[half], ++count,
				 __ATOMIC_RELEASE);
	}
	if (count >= SHIM_POINTS)
		keep_every_other();
	next_point = clock + points->interval;
}

/* Only one thread at a time runs here: the thread that has replaced memory_point_due,
 * until it sets a new time. */
COLD void memory_point_add(uint64_t tick, uint64_t live_bytes)
{
	uint64_t due = __atomic_load_n(&memory_point_due, __ATOMIC_ACQUIRE);
	uint64_t clock;

	if (tick < due ||
	    !__atomic_compare_exchange_n(&memory_point_due, &due, NEVER, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	clock = shim_clock_of_coarse(tick);
	if (clock >= next_point)
		add_point(clock, live_bytes);
	if (clock >= next_snapshot) {
		memory_snapshot_take(memory_leaks_ms);
		/* The tick may be late: a whole period lies between two snapshots. */
		next_snapshot = now() + memory_snapshot_period;
	}
	due = next_point < next_snapshot ? next_point : next_snapshot;
	due = due > clock ? tick_after(tick, due - clock) : tick;
	__atomic_store_n(&memory_point_due, due, __ATOMIC_RELEASE);
}
