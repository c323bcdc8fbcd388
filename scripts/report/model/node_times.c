/*
 * Adds the times of a node to its path: the total, minimum and maximum of its
 * calls, and how much of this time is the program's own according to the clock
 * and the hooks.  A node with more time than possible is rejected.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "model/histograms.h"
#include "model/model.h"
#include "model/node_times.h"
#include "read/calltree.h"
#include "read/process.h"

void model_blame(uint64_t *count, uint64_t *first, uint64_t offset)
{
	if ((*count)++ == 0)
		*first = offset;
}

void model_count_bad(struct model *model, const char *name, uint64_t count,
		     uint64_t first)
{
	if (!count)
		return;
	warn("%s: at offset %" PRIu64
	     ": a count or time that cannot be%s; not added",
	     name, first, more_like_it(count - 1));
	model->damaged += count;
}

static void add_range(struct path *path, double min, double max)
{
	path->min = fmin(path->min, min);
	path->max = fmax(path->max, max);
}

static int bucket_of(double time, double unit)
{
	int bucket = time > unit ? ilogb(time / unit * (1 + 1e-12)) : 0;

	return bucket < SHIM_BUCKETS ? bucket : SHIM_BUCKETS - 1;
}

static void add_extra(struct build *build, struct path *path,
		      struct shim_extra_node *extra)
{
	double unit = build->process->unit_ns;
	int i, shift;

	/* The clock of another host may have another unit. */
	shift = (int)lround(log2(unit / build->model->bucket_ns));
	for (i = 0; i < SHIM_BUCKETS; i++) {
		int bucket = i + shift < 0 ? 0 : i + shift;

		if (bucket >= SHIM_BUCKETS)
			bucket = SHIM_BUCKETS - 1;
		histogram_add(build->model, path, bucket,
			      *shim_bucket(extra, (unsigned)i));
	}
	add_range(path, (double)extra->min * unit, (double)extra->max * unit);
	build->model->has_extras = true;
}

/* The duration so far of a node's open call.  By processor time, nothing is known after the
 * thread's last tick. */
static double open_ns(const struct build *build, const struct shim_node *node)
{
	const struct process *process = build->process;
	uint64_t start = node->start, end = process->end_clock;

	if (process->meta.is_cpu && build->last < end)
		end = build->last;
	if (!node->frame || start == 0 || start > end)
		return 0;
	if (start < process->meta.first_clock)
		start = process->meta.first_clock;
	return end > start ? process_ns(process, end - start) : 0;
}

void node_times_add_ranges(struct build *build, const struct shim_node *node,
			   uint64_t offset, struct path *path)
{
	struct process *process = build->process;
	uint64_t finished = node->calls - (node->frame && node->calls);
	struct shim_extra_node extra;
	double time;

	if (node->frame && node->coarse == 0)
		path->open_max = fmax(path->open_max, open_ns(build, node));
	if (finished == 0)
		return;
	if (node->coarse == 0 && node->extra &&
	    !(node->extra & SHIM_EXTRA_SELF) &&
	    !calltree_is_memory(build->file, node->extra)) {
		if (calltree_extra(build->file, node->extra, offset, &extra) &&
		    extra.min <= extra.max) {
			add_extra(build, path, &extra);
			return;
		}
		model_blame(&build->bad_extras, &build->bad_extra_offset,
			    offset);
	}
	if (node->coarse == 0 && finished == 1) {
		time = process_ns(process, node->time);
		histogram_add(build->model, path,
			      bucket_of(time, build->model->bucket_ns), 1);
		add_range(path, time, time);
		return;
	}
	path->has_no_range = true;
}

bool node_times_are_possible(const struct process *process,
			     const struct shim_node *node)
{
	return node->coarse <= 1 &&
	       node->time <= process->limit_clock - process->meta.first_clock;
}

/* The times in the node of a call and in its parent's. */
struct timing {
	const struct shim_node *node;
	struct path *path, *parent;
	bool has_exact_parent;
	double time, inside, outside, tick;
};

static uint64_t seen_self(const struct build *build,
			  const struct shim_node *node)
{
	struct shim_memory_node memory;

	if (node->extra & SHIM_EXTRA_SELF)
		return node->extra >> 1;
	return node->extra && calltree_memory(build->file, node->extra,
					      &memory) ?
		       memory.self :
		       0;
}

/*
 * Adds the self time from ticks.  Around each call, the hooks take a time that
 * ticks cannot distinguish from the program's.
 */
static void add_seen(struct build *build, const struct timing *timing)
{
	const struct process *process = build->process;
	const struct shim_cost *rest = &process->meta.cost_unseen;
	const struct shim_node *node = timing->node;
	double calls = (double)node->calls * process->unit_ns / 1000;
	double self = process_ns(process, seen_self(build, node));
	struct self_seen *seen = node->coarse ? &timing->path->seen :
						&timing->path->exactly.seen;
	struct self_seen *above = timing->has_exact_parent ?
					  &timing->parent->exactly.seen :
					  &timing->parent->seen;

	seen->time += self - calls * rest->inside;
	above->time -= calls * rest->outside;
	timing->path->seen_cost += calls * rest->inside;
	timing->parent->seen_cost += calls * rest->outside;
	seen->variance += timing->tick * (node->group || process->meta.is_cpu ?
						  self :
						  timing->tick * node->hits);
	timing->path->seen_tick = fmax(timing->path->seen_tick, timing->tick);
}

static void add_exactly(const struct timing *timing)
{
	struct self_exactly *own = &timing->path->exactly;
	struct self_exactly *above = &timing->parent->exactly;

	if (!timing->node->coarse) {
		own->raw += timing->time;
		own->cost += timing->inside;
	}
	if (!timing->has_exact_parent)
		return;
	above->raw -= timing->time;
	above->cost += timing->outside;
	if (timing->node->coarse)
		above->child_variance += timing->tick * timing->time;
}

static bool has_exact_parent(const struct build *build,
			     const struct entry *entry)
{
	const struct tree_file *file = build->file;
	struct shim_node node;

	if (entry->parent == NONE ||
	    file->entries[entry->parent].site == NONE ||
	    recording_is_frame(build->model->recording,
			       &file->entries[entry->parent]))
		return false;
	memcpy(&node, file->data + file->entries[entry->parent].offset,
	       sizeof(node));
	return node.coarse == 0;
}

/* Waits of up to a tick may be unknown. */
static void add_waiting(struct path *path, const struct shim_node *node,
			double unit, double tick)
{
	path->has_waited = true;
	path->waited += (double)node->hits * SHIM_WAITING_UNIT * unit;
	path->waited_least = fmax(path->waited_least, tick);
}

/*
 * Whether ticks tell the self times of calls.  Ticks are of the time in which the thread runs
 * a call's stack, and wall-clock times of calls include the time in which another coroutine
 * runs: what is between the two is not our own cost.
 */
static bool has_ticks(const struct build *build)
{
	const struct shim_meta *meta = &build->process->meta;

	return build->is_calibrated ||
	       (meta->has_self && (meta->is_cpu || !build->has_coroutines));
}

void node_times_add(struct build *build, const struct shim_node *node,
		    const struct entry *entry, struct path *path,
		    struct path *parent)
{
	struct thread *thread = &build->model->threads[entry->thread];
	const struct process *process = build->process;
	const struct shim_meta *meta = &process->meta;
	const struct shim_cost *cost = node->coarse ? &meta->cost_coarse :
						      &meta->cost_exact;
	double unit = process->unit_ns, calls = (double)node->calls;
	double inside = calls * cost->inside / 1000 * unit;
	double outside = calls * cost->outside / 1000 * unit;
	double time = (double)node->time * unit + open_ns(build, node);
	double tick = build->is_calibrated ?
			      (double)meta->sample_period_ns :
			      (double)process_tick(process) * unit;

	if (meta->is_cpu && !node->group)
		add_waiting(path, node, unit, tick);
	if (node->group)
		outside += (double)node->hits * SHIM_ASKING_UNIT * unit;
	path->is_timed = true;
	path->exactly.is_calibrated |= build->is_calibrated;
	build->model->has_errors |= build->is_calibrated;
	path->total_raw += time;
	path->cost += inside;
	if (has_ticks(build)) {
		struct timing timing = {
			node, path,   parent,  has_exact_parent(build, entry),
			time, inside, outside, tick
		};

		add_seen(build, &timing);
		add_exactly(&timing);
	} else {
		path->unseen_calls += node->calls;
	}
	thread->self -= inside;
	if (parent->function == NONE) {
		thread->self += time;
		thread->self_raw += time;
	} else {
		parent->cost += outside;
		thread->self -= outside;
	}
	if (node->coarse) {
		path->tick = fmax(path->tick, tick);
		path->raw_variance += tick * (meta->has_self ?
						      time :
						      tick * node->hits);
		build->model->has_errors = true;
	}
}
