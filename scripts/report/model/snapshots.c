/*
 * Heap snapshots that were requested, and the size of the heap over time; both
 * are in recordings of the memory profiler.  The paths of a snapshot are those
 * of the memory nodes that it names, which may be in any file of the process.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "model/model.h"
#include "model/snapshots.h"
#include "read/calltree.h"
#include "read/process.h"

struct snapshots {
	struct snapshot *all; /* by process, then by number */
	uint32_t count, room;
	/* Of the process that is being added: */
	uint32_t first;
	struct map numbers; /* by number of the snapshot */
	struct map paths;   /* by address of a memory node */
};

static void load_node(const struct tree_file *file, uint64_t offset, void *node,
		      size_t size)
{
	memcpy(node, file->data + offset, size);
}

/* --- snapshots --- */

static double after_start(const struct process *process, uint64_t clock)
{
	uint64_t first = process->meta.first_clock;

	return process->has_meta && clock > first ?
		       process_ns(process, clock - first) :
		       0;
}

static void add_snapshot(struct snapshots *snapshots,
			 const struct process *process,
			 const struct shim_snapshot_node *node)
{
	uint32_t number = (uint32_t)node->function;

	if (map_add(&snapshots->numbers, number, snapshots->count) !=
	    snapshots->count)
		return;
	GROW(snapshots->all, snapshots->count, snapshots->room);
	snapshots->all[snapshots->count++] = (struct snapshot){
		.process = process,
		.number = number,
		.ns = after_start(process, node->clock),
		.duration_ns = process->has_meta ?
				       process_ns(process, node->duration) :
				       0,
		.leaks = node->leaks > SHIM_LEAKS_OFF ? SHIM_LEAKS_UNKNOWN :
							node->leaks,
		.missing = node->missing,
		.is_complete = node->is_complete == 1,
	};
}

static void add_alive(struct alive *to, const struct shim_alive_node *node)
{
	to->bytes += node->bytes;
	to->blocks += node->blocks;
	to->lost += node->lost_bytes;
	to->lost_blocks += node->lost_blocks;
	to->below += node->below_bytes;
	to->below_blocks += node->below_blocks;
}

static void place_alive(struct snapshots *snapshots,
			const struct shim_alive_node *node)
{
	uint32_t path = map_get(&snapshots->paths, node->node);
	uint32_t i = map_get(&snapshots->numbers, (uint32_t)node->function);
	struct snapshot *snapshot;

	if (i == NONE)
		return;
	snapshot = &snapshots->all[i];
	if (path == NONE) {
		snapshot->missing += node->blocks;
		return;
	}
	GROW(snapshot->paths, snapshot->path_count, snapshot->path_room);
	snapshot->paths[snapshot->path_count] = (struct alive){ .path = path };
	add_alive(&snapshot->paths[snapshot->path_count++], node);
	add_alive(&snapshot->all, node);
}

static int compare_snapshots(const void *left, const void *right)
{
	const struct snapshot *a = left, *b = right;

	return (a->number > b->number) - (a->number < b->number);
}

/* Several nodes may have the same path in the model. */
static int compare_paths(const void *left, const void *right)
{
	const struct alive *a = left, *b = right;

	return (a->path > b->path) - (a->path < b->path);
}

static void add_sums(struct alive *to, const struct alive *alive)
{
	to->bytes += alive->bytes;
	to->blocks += alive->blocks;
	to->lost += alive->lost;
	to->lost_blocks += alive->lost_blocks;
	to->below += alive->below;
	to->below_blocks += alive->below_blocks;
}

static void sum_up(struct snapshot *snapshot)
{
	struct alive *paths = snapshot->paths;
	uint32_t i, kept = 0;

	if (!snapshot->path_count)
		return;
	qsort(paths, snapshot->path_count, sizeof(*paths), compare_paths);
	for (i = 1; i < snapshot->path_count; i++) {
		if (paths[i].path != paths[kept].path) {
			paths[++kept] = paths[i];
			continue;
		}
		add_sums(&paths[kept], &paths[i]);
	}
	snapshot->path_count = kept + 1;
}

static void move_paths(struct snapshot *snapshot, const uint32_t *own)
{
	uint32_t i, kept = 0;

	snapshot->all = (struct alive){ .path = snapshot->all.path };
	for (i = 0; i < snapshot->path_count; i++) {
		struct alive alive = snapshot->paths[i];

		if (own[alive.path] == NONE)
			continue;
		alive.path = own[alive.path];
		snapshot->paths[kept++] = alive;
		add_sums(&snapshot->all, &alive);
	}
	snapshot->path_count = kept;
	sum_up(snapshot);
}

void snapshots_move(struct model *model, const uint32_t *own)
{
	uint32_t i;

	for (i = 0; model->snapshots && i < model->snapshots->count; i++)
		move_paths(&model->snapshots->all[i], own);
}

/* --- a process --- */

void snapshots_begin(struct model *model, const struct process *process)
{
	struct shim_snapshot_node node;
	uint32_t i, j;

	for (i = 0; i < process->file_count; i++)
		for (j = 0; j < process->files[i].snapshot_count; j++) {
			const struct tree_file *file = &process->files[i];

			if (!model->snapshots)
				model->snapshots = allocate(
					1, sizeof(*model->snapshots));
			load_node(file, file->snapshots[j], &node,
				  sizeof(node));
			add_snapshot(model->snapshots, process, &node);
		}
}

void snapshots_note(struct model *model, uint64_t address, uint32_t path)
{
	struct snapshots *snapshots = model->snapshots;

	if (snapshots && snapshots->count > snapshots->first)
		map_add(&snapshots->paths, address, path);
}

void snapshots_end(struct model *model, const struct process *process)
{
	struct snapshots *snapshots = model->snapshots;
	struct shim_alive_node node;
	uint32_t i, j;

	if (!snapshots)
		return;
	for (i = 0; i < process->file_count; i++)
		for (j = 0; j < process->files[i].alive_count; j++) {
			load_node(&process->files[i],
				  process->files[i].alive[j], &node,
				  sizeof(node));
			place_alive(snapshots, &node);
		}
	for (i = snapshots->first; i < snapshots->count; i++)
		sum_up(&snapshots->all[i]);
	if (snapshots->count > snapshots->first)
		qsort(snapshots->all + snapshots->first,
		      snapshots->count - snapshots->first,
		      sizeof(*snapshots->all), compare_snapshots);
	snapshots->first = snapshots->count;
	map_free(&snapshots->numbers);
	map_free(&snapshots->paths);
	snapshots->numbers = snapshots->paths = (struct map){ 0 };
}

const struct snapshot *snapshots_get(const struct model *model, uint32_t i)
{
	return model->snapshots && i < model->snapshots->count ?
		       &model->snapshots->all[i] :
		       NULL;
}

/* --- points --- */

static uint32_t read_points(const struct process *process,
			    const struct shim_points_node *node,
			    struct point *points)
{
	uint64_t half = node->active & 1, count = node->count[half], i;
	uint32_t kept = 0;

	if (count > SHIM_POINTS)
		count = SHIM_POINTS;
	for (i = 0; i < count; i++) {
		const struct shim_point *point = &node->half[half][i];

		if (point->clock < process->meta.first_clock ||
		    point->clock > process->limit_clock ||
		    (i > 0 && point->clock < point[-1].clock))
			continue;
		points[kept++] = (struct point){
			after_start(process, point->clock), point->live_bytes
		};
	}
	return kept;
}

uint32_t snapshots_points(const struct process *process,
			  struct point points[SHIM_POINTS])
{
	struct shim_points_node node;
	uint32_t i;

	for (i = 0; process->has_meta && i < process->file_count; i++) {
		const struct tree_file *file = &process->files[i];

		if (!file->points)
			continue;
		load_node(file, file->points, &node, sizeof(node));
		return read_points(process, &node, points);
	}
	return 0;
}
