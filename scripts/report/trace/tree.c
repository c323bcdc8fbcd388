/*
 * Builds from a trace the tree of paths that calltree would have recorded of
 * the same run: one tree_file for each trace, with nodes made here.  Every
 * output of a tree therefore works for a trace.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "read/calltree.h"
#include "read/process.h"
#include "read/recording.h"
#include "trace/clocks.h"
#include "trace/reader.h"
#include "trace/trace.h"
#include "trace/tree.h"

#define BASE 64u /* offset of the first node: 0 is no offset */

struct node {
	uint64_t offset; /* offset of its struct shim_node, or of its root */
	uint64_t extra;	 /* offset of its struct shim_extra_node, or 0 */
	uint32_t last_site, last_child; /* its last callee */
	/* a call has ended; a path with one call has no extra node */
	bool has_ended;
};

/* The open calls of a track: nodes, and the root below them. */
struct branch {
	uint32_t thread, track, root;
	uint32_t depth, room;
	uint32_t *open;
};

struct builder {
	struct trace *trace;
	const struct trace_range *range;
	struct trace_file *file;
	struct process *process;
	uint32_t process_number; /* in recording->processes */
	struct tree_file *tree;
	unsigned char *data;
	uint64_t size, room;
	struct node *nodes;
	uint32_t node_count, node_room, entry_room;
	struct map children;	 /* parent << 32 | site */
	struct branch *branches; /* the tracks of one thread */
	uint32_t branch_count, branch_room;
	struct map by_track;
	struct branch *branch;
};

static uint64_t take(struct builder *builder, size_t size)
{
	uint64_t at = builder->size;

	while (builder->size + size > builder->room) {
		/* There may be ten thousand threads with few calls each. */
		uint64_t more = builder->room ? builder->room : 512;

		builder->data = grow(builder->data, builder->room + more, 1);
		memset(builder->data + builder->room, 0, more);
		builder->room += more;
	}
	builder->size += size;
	return at;
}

static struct shim_node *node_at(struct builder *builder, uint32_t node)
{
	return (struct shim_node *)(builder->data +
				    builder->nodes[node].offset);
}

static uint32_t add_node(struct builder *builder, size_t size, uint32_t parent,
			 uint32_t site)
{
	struct tree_file *tree = builder->tree;
	uint64_t offset = take(builder, size);

	GROW(builder->nodes, builder->node_count, builder->node_room);
	GROW(tree->entries, tree->entry_count, builder->entry_room);
	builder->nodes[builder->node_count] = (struct node){
		.offset = offset,
		.last_site = NONE,
	};
	tree->entries[tree->entry_count++] = (struct entry){
		.offset = offset,
		.parent = parent,
		.site = site,
		.path = NONE,
		.thread = NONE,
	};
	return builder->node_count++;
}

static uint32_t add_root(struct builder *builder, uint32_t thread,
			 uint32_t track)
{
	const struct trace_thread *found = &builder->trace->threads[thread];
	uint32_t node = add_node(builder, sizeof(struct shim_thread_node), NONE,
				 NONE);
	struct shim_thread_node *root = (struct shim_thread_node *)node_at(
		builder, node);

	root->function = SHIM_NODE_THREAD | found->tid;
	root->coroutine = track != 0;
	memcpy(root->name, found->name, strnlen(found->name, 16));
	if (builder->node_count == 1)
		memcpy(root->lost, builder->file->info.lost,
		       sizeof(root->lost));
	return node;
}

/* Forgets the branches of a thread that has ended. */
static void forget_branches(struct builder *builder)
{
	uint32_t i;

	for (i = 0; i < builder->branch_count; i++)
		free(builder->branches[i].open);
	builder->branch_count = 0;
	builder->branch = NULL;
	map_free(&builder->by_track);
}

static void use_branch(struct builder *builder, const struct trace_event *event)
{
	struct branch *branch = builder->branch;
	uint32_t i;

	if (branch && branch->thread == event->thread &&
	    branch->track == event->track)
		return;
	/* A selection may have left out the begin of the thread. */
	if (branch && branch->thread != event->thread)
		forget_branches(builder);
	i = map_add(&builder->by_track, event->track, builder->branch_count);
	if (i < builder->branch_count) {
		builder->branch = &builder->branches[i];
		return;
	}
	i = add_root(builder, event->thread, event->track);
	GROW(builder->branches, builder->branch_count, builder->branch_room);
	branch = &builder->branches[builder->branch_count++];
	*branch = (struct branch){ .thread = event->thread,
				   .track = event->track,
				   .root = i };
	builder->branch = branch;
}

static uint32_t find_child(struct builder *builder, uint32_t parent,
			   uint32_t site)
{
	uint32_t child;

	if (builder->nodes[parent].last_site == site)
		return builder->nodes[parent].last_child;
	child = map_add(&builder->children, (uint64_t)parent << 32 | site,
			builder->node_count);
	if (child == builder->node_count) {
		add_node(builder, sizeof(struct shim_node), parent, site);
		node_at(builder, child)->function = 1;
	}
	builder->nodes[parent].last_site = site;
	builder->nodes[parent].last_child = child;
	return child;
}

/* Converts a time of the trace, and a duration, to clock units. */
static uint64_t clock_of(const struct builder *builder, double time_ns)
{
	const struct process *process = builder->process;

	time_ns -= trace_clocks_ns(builder->trace, builder->process_number,
				   process->meta.first_mono_ns);
	return process->meta.first_clock + whole(time_ns / process->unit_ns);
}

static void enter(struct builder *builder, const struct trace_event *event)
{
	struct branch *branch = builder->branch;
	uint32_t parent = branch->depth ? branch->open[branch->depth - 1] :
					  branch->root;
	uint32_t child = find_child(builder, parent, event->site);
	struct shim_node *node = node_at(builder, child);

	GROW(branch->open, branch->depth, branch->room);
	branch->open[branch->depth++] = child;
	node->calls += !event->is_guessed;
}

/* Most paths of a trace have one call, whose duration is all there is to
 * store. */
static void make_extra(struct builder *builder, uint32_t number)
{
	uint64_t at = take(builder, sizeof(struct shim_extra_node));
	struct shim_node *node = node_at(builder, number);
	struct shim_extra_node *extra =
		(struct shim_extra_node *)(builder->data + at);

	builder->nodes[number].extra = at;
	node->extra = at;
	extra->function = SHIM_NODE_EXTRA;
	extra->node = builder->nodes[number].offset;
	extra->min = UINT64_MAX;
	extra->last = node->time;
}

static void count_duration(struct builder *builder, uint32_t number,
			   uint64_t duration)
{
	struct shim_extra_node *extra;
	unsigned bucket = 0;
	uint64_t last;

	if (!builder->nodes[number].has_ended)
		return;
	if (!builder->nodes[number].extra)
		make_extra(builder, number);
	extra = (struct shim_extra_node *)(builder->data +
					   builder->nodes[number].extra);
	last = extra->last;
	extra->last = duration;
	while (bucket < SHIM_BUCKETS - 1 && last >> bucket > 1)
		bucket++;
	++*shim_bucket(extra, bucket);
	if (last < extra->min)
		extra->min = last;
	if (last > extra->max)
		extra->max = last;
}

static void leave(struct builder *builder, const struct trace_event *event)
{
	struct branch *branch = builder->branch;
	struct shim_node *node;
	uint64_t duration;
	uint32_t number;

	number = branch->open[--branch->depth];
	node = node_at(builder, number);
	/* What was open at the end of a window has the time in the window. */
	if (event->is_open && !builder->range->to_ns) {
		if (builder->nodes[number].has_ended &&
		    !builder->nodes[number].extra) {
			make_extra(builder, number);
			node = node_at(builder, number);
		}
		node->frame = 8;
		node->start = clock_of(builder,
				       event->time_ns - event->duration_ns);
		return;
	}
	duration = whole(event->duration_ns / builder->process->unit_ns + 0.5);
	count_duration(builder, number, duration);
	node_at(builder, number)->time += duration;
	builder->nodes[number].has_ended = true;
}

static void add_event(struct builder *builder, const struct trace_event *event)
{
	switch (event->kind) {
	case TRACE_THREAD:
		forget_branches(builder);
		use_branch(builder, event);
		break;
	case TRACE_ENTER:
		use_branch(builder, event);
		enter(builder, event);
		break;
	case TRACE_LEAVE:
		use_branch(builder, event);
		leave(builder, event);
		break;
	default: break;
	}
}

static void build(struct trace *trace, uint32_t file, struct tree_file *tree,
		  const struct trace_range *range)
{
	struct builder builder = {
		.trace = trace,
		.range = range,
		.file = &trace->files[file],
		.process_number = trace->files[file].process,
		.process = &trace->recording
				    ->processes[trace->files[file].process],
		.tree = tree,
	};
	struct trace_reader *reader;
	struct trace_event event;

	*tree = (struct tree_file){ .name = trace->files[file].name };
	take(&builder, BASE);
	reader = trace_begin(trace, file, range);
	while (trace_next(reader, &event))
		add_event(&builder, &event);
	trace_end(reader);
	forget_branches(&builder);
	free(builder.branches);
	free(builder.nodes);
	map_free(&builder.children);
	tree->data = grow(builder.data, builder.size, 1);
	tree->size = builder.size;
	tree->chunk_count = 1;
	tree->chunks[0] = (struct shim_chunk){ BASE, builder.size - BASE,
					       BASE };
}

static void add_damage(struct trace_damage *sum, const struct trace_damage *one)
{
	sum->missing += one->missing;
	sum->damaged += one->damaged;
	sum->bytes += one->bytes;
}

void trace_add_calls(struct trace *trace, const struct trace_range *range)
{
	struct recording *recording = trace->recording;
	bool *is_counted = allocate(recording->process_count,
				    sizeof(*is_counted));
	uint32_t i;

	for (i = 0; i < recording->process_count; i++)
		is_counted[i] = process_has_calls(&recording->processes[i]);
	for (i = 0; i < trace->file_count; i++) {
		struct process *process =
			&recording->processes[trace->files[i].process];

		if (is_counted[trace->files[i].process])
			continue;
		process->files = grow(process->files, process->file_count + 1,
				      sizeof(*process->files));
		build(trace, i, &process->files[process->file_count++], range);
		add_damage(&recording->trace_damage, &trace->files[i].damage);
	}
	free(is_counted);
}
