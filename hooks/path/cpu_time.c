/*
 * Processor time instead of time.  Hooks read the tick as ever.  When it has changed, the
 * thread reads its processor time, too.  By what the clock got ahead of it, the thread has
 * waited: for a processor, or asleep.  That time is not charged, and the calls that are
 * open begin later by it, so that their durations are without it.
 */
#include "path/cpu_time.h"

#include <shim/builtin.h>

#include <shim/banned.h>

/* Less than this share of a tick stays for the next: that the clocks are not read at the
 * same time is no waiting, and a deep stack takes a while. */
#define LEAST_SHARE 32

static bool read_behind(int64_t *behind)
{
	uint64_t time;

	if (!shim_clock_cpu(&time))
		return false;
	*behind = (int64_t)(shim_clock_read() - time);
	return true;
}

void cpu_begin_thread(struct tree *tree)
{
	if (tree_is_cpu && !read_behind(&tree->behind))
		tree->behind = INT64_MAX;
}

/* A signal handler that comes between has done it for this call. */
static void begin_later(struct shim_node *node, uint64_t waited, uint64_t tick)
{
	uint64_t start = __atomic_load_n(&node->start, __ATOMIC_RELAXED);
	uint64_t later = start + waited < tick ? start + waited : tick;

	if (start < later)
		shim_local_cas(&node->start, (void *)start, (void *)later);
}

static void leave_out(struct tree *tree, uint64_t waited, uint64_t tick)
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

COLD uint64_t cpu_leave_out_waiting(uint64_t last, uint64_t tick)
{
	struct tree *tree = tree_hot.tree;
	uint64_t waited;
	int64_t known, now;

	if (!tree || tree_hot.shared || tree_hot.no_clock || last == 0 ||
	    tick <= last)
		return 0;
	known = __atomic_load_n(&tree->behind, __ATOMIC_RELAXED);
	if (!read_behind(&now) || now <= known)
		return 0;
	waited = (uint64_t)(now - known);
	if (waited < (tick - last) / LEAST_SHARE)
		return 0;
	if (waited > tick - last)
		waited = tick - last;
	/* Otherwise a signal handler did it. */
	if (!shim_local_cas(&tree->behind, (void *)known,
			    (void *)(known + (int64_t)waited)))
		return 0;
	leave_out(tree, waited, tick);
	return waited;
}
