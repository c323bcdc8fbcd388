/*
 * Times calls by processor time instead of wall-clock time.  Hooks still read the tick.
 * When the tick has changed, the thread also reads its processor time.  The thread has
 * waited for the difference of the two clocks: for a processor, or asleep.  That time
 * is not charged, and the starts of the open calls move by it, so that their durations
 * exclude it.
 */
#include "path/cpu_time.h"

#include <shim/builtin.h>

#include <shim/banned.h>

/* A wait that is shorter than this share of a tick is left for the next tick.  It may
 * only be the time between the readings of the two clocks; and a deep stack takes time
 * to change. */
#define LEAST_SHARE 32

void cpu_begin_thread(struct tree *tree)
{
	uint64_t time;

	if (tree_is_cpu)
		tree->computed = shim_clock_cpu(&time) ? (int64_t)time :
							 INT64_MAX;
}

/* A signal handler that comes between has already moved the start of this call. */
static void begin_later(struct shim_node *node, uint64_t waited, uint64_t tick)
{
	uint64_t start = __atomic_load_n(&node->start, __ATOMIC_RELAXED);
	uint64_t later = start + waited < tick ? start + waited : tick;

	if (start < later)
		shim_local_cas(&node->start, (void *)start, (void *)later);
}

static void exclude(struct tree *tree, uint64_t waited, uint64_t tick)
{
	struct shim_meta *meta = shim_record_meta();
	struct shim_node *node = tree_hot.current;

	if (node == &tree_no_call)
		node = tree->current;
	for (; !is_root(node); node = parent_of(node))
		begin_later(node, waited, tick);
	if (meta)
		__atomic_fetch_add(&meta->waited, waited, __ATOMIC_RELAXED);
}

/*
 * The waiting is derived from the time that the thread has computed.  After the tick
 * the thread may have waited for long, but it cannot have computed for longer than a
 * tick.
 */
static uint64_t waited_of(uint64_t length, int64_t *computed, uint64_t since)
{
	int64_t room = (int64_t)length;

	if (*computed >= room - room / LEAST_SHARE) {
		*computed -= room;
		if (*computed > (int64_t)since)
			*computed = (int64_t)since;
		return 0;
	}
	if (*computed > 0) {
		room -= *computed;
		*computed = 0;
	}
	return (uint64_t)room;
}

COLD uint64_t cpu_leave_out_waiting(uint64_t last, uint64_t tick)
{
	struct tree *tree = tree_hot.tree;
	uint64_t waited, time;
	int64_t known, rest;

	if (!tree || tree_hot.shared || tree_hot.no_clock || tick <= last)
		return 0;
	/* The first tick of a thread: its time until then belongs to no call. */
	if (last == 0) {
		cpu_begin_thread(tree);
		return 0;
	}
	known = __atomic_load_n(&tree->computed, __ATOMIC_RELAXED);
	if (known == INT64_MAX || !shim_clock_cpu(&time))
		return 0;
	rest = (int64_t)time - known;
	waited = waited_of(tick - last, &rest, shim_clock_read() - tick);
	/* Otherwise a signal handler did it. */
	if (!shim_local_cas(&tree->computed, (void *)known,
			    (void *)((int64_t)time - rest)) ||
	    waited == 0)
		return 0;
	exclude(tree, waited, tick);
	return waited;
}

/* A process that is killed between the two stores has lost time, and invented none. */
void cpu_leave_stack(struct shim_node *node, const struct shim_node *base)
{
	uint64_t start;

	for (; node != base && !is_root(node); node = parent_of(node)) {
		start = node->start;
		node->start = 0;
		if (start != 0 && start < tree_hot.clock)
			shim_local_add(&node->time, tree_hot.clock - start);
	}
}

void cpu_come_back(struct shim_node *node, const struct shim_node *base)
{
	for (; node != base && !is_root(node); node = parent_of(node))
		node->start = tree_hot.clock;
}

/* Keeps the part below a unit for the next call. */
void cpu_count_waiting(struct shim_node *node, uint64_t waited)
{
	struct tree *tree = tree_hot.tree;
	uint64_t units;

	if (waited == 0 || !tree)
		return;
	if (node == &tree_no_call)
		node = tree->current;
	waited += tree->waited_rest;
	units = waited / SHIM_WAITING_UNIT;
	tree->waited_rest = waited % SHIM_WAITING_UNIT;
	if (is_root(node) || node->group)
		return;
	node->hits = units < UINT32_MAX - node->hits ?
			     node->hits + (uint32_t)units :
			     UINT32_MAX;
}
