/*
 * Adds the samples of a file to the paths of the model.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <shim/format.h>

#include "base/numbers.h"
#include "model/model.h"
#include "model/node_times.h"
#include "model/sampled_nodes.h"
#include "read/calltree.h"
#include "read/process.h"
#include "read/recording.h"

/* @weight samples found the path; sampled_nodes_add_up() adds them to the paths
 * above it. */
static void add_samples(struct build *build, uint32_t number, uint32_t thread,
			double weight, double period_ns)
{
	struct model *model = build->model;
	double time = weight * period_ns;
	struct path *path = &model->paths[number];

	model->calls += whole(weight);
	model->threads[thread].calls += whole(weight);
	model->threads[thread].self += time;
	model->threads[thread].self_raw += time;
	model->has_errors = true;
	path->own += whole(weight);
	if (path->function == NONE)
		return;
	path->calls += whole(weight);
	path->is_timed = true;
	path->total_raw += time;
	path->tick = fmax(path->tick, period_ns);
	path->raw_variance += time * period_ns;
	path->has_no_range = true;
}

/* A sample of a path is also a sample of the paths above it.  Children have
 * higher numbers than their parents. */
void sampled_nodes_add_up(struct model *model)
{
	uint32_t i;

	for (i = model->path_count - 1; i > 0; i--) {
		const struct path *path = &model->paths[i];
		struct path *parent = &model->paths[path->parent];

		if (!path->is_timed || parent->function == NONE)
			continue;
		parent->calls += path->calls;
		parent->is_timed = true;
		parent->total_raw += path->total_raw;
		parent->tick = fmax(parent->tick, path->tick);
		parent->raw_variance += path->raw_variance;
		parent->has_no_range = true;
	}
}

/* A thread that slept until the end would have been sampled there until
 * then. */
static void add_sleep(struct build *build, const struct entry *entry,
		      const struct shim_sample_root *root)
{
	const struct process *process = build->process;
	struct tree_file *file = build->file;
	uint32_t found = calltree_find(file, root->last_node);
	double time;

	if (root->last_clock == 0 || found == NONE || !process->has_meta ||
	    file->entries[found].site == NONE ||
	    root->last_clock > process->end_clock)
		return;
	time = process_ns(process, process->end_clock - root->last_clock);
	if (time < 2 * (double)root->period_ns)
		return;
	add_samples(build, file->entries[found].path, entry->thread,
		    floor(time / (double)root->period_ns),
		    (double)root->period_ns);
}

static bool copy_root(const struct build *build, const struct entry *entry,
		      struct shim_sample_root *root)
{
	memcpy(root, build->file->data + entry->offset, sizeof(*root));
	return root->period_ns > 0 && root->period_ns <= 1000000000u;
}

/* The samples whose innermost frame is this one. */
static uint64_t count_own(const struct build *build, const struct entry *entry)
{
	const unsigned char *at = build->file->data + entry->offset;
	struct shim_sampled_node frame;
	struct shim_node node;

	if (recording_is_frame(build->model->recording, entry)) {
		memcpy(&frame, at, sizeof(frame));
		return frame.samples;
	}
	memcpy(&node, at, sizeof(node));
	return node.calls;
}

static bool is_guess(const struct build *build, const struct entry *entry)
{
	uint64_t address;

	if (!recording_is_frame(build->model->recording, entry))
		return false;
	memcpy(&address,
	       build->file->data + entry->offset +
		       offsetof(struct shim_sampled_node, address),
	       sizeof(address));
	return address & SHIM_NODE_EXACT;
}

/* @own samples found @entry.  (Parents can form a circle in a damaged file.) */
static void add_guesses(struct build *build, const struct entry *entry,
			uint64_t own)
{
	const struct tree_file *file = build->file;
	struct model *model = build->model;
	bool found = false;
	uint32_t steps;

	for (steps = 0; steps < file->entry_count; steps++) {
		if (is_guess(build, entry)) {
			model->paths[entry->path].guessed += own;
			found = true;
		}
		if (entry->parent == NONE ||
		    file->entries[entry->parent].site == NONE)
			break;
		entry = &file->entries[entry->parent];
	}
	if (found)
		model->guessed += own;
}

/* The roots describe the nodes that follow them, up to the next root. */
void sampled_nodes_add(struct build *build)
{
	struct tree_file *file = build->file;
	struct shim_sample_root root = { .period_ns = 0 };
	bool good = false;
	uint64_t own;
	uint32_t i;

	for (i = 0; i < file->entry_count; i++) {
		const struct entry *entry = &file->entries[i];

		if (entry->site == NONE) {
			good = copy_root(build, entry, &root);
			if (!good)
				continue;
			build->model->period_ns = (double)root.period_ns;
			build->model->sample_mode = root.mode;
			add_sleep(build, entry, &root);
			continue;
		}
		own = count_own(build, entry);
		if (own == 0)
			continue;
		/* There cannot have been more samples than time. */
		if (good && own <= UINT32_MAX * 64ull) {
			add_samples(build, entry->path, entry->thread,
				    (double)own, (double)root.period_ns);
			if (file->has_guesses)
				add_guesses(build, entry, own);
		} else {
			model_blame(&build->bad_times, &build->bad_time_offset,
				    entry->offset);
		}
	}
}
