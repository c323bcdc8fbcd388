/*
 * Adds up the nodes of all files into one tree of call paths.  A node's path is
 * its parent's path plus its function.  Parents are looked up before their
 * children, with an explicit stack instead of recursion, because a chain may
 * have a million nodes, and may be a cycle in a damaged file.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "model/bounds.h"
#include "model/budget.h"
#include "model/exceptions.h"
#include "model/frames.h"
#include "model/functions.h"
#include "model/locks.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/node_times.h"
#include "model/sampled_nodes.h"
#include "model/snapshots.h"
#include "model/totals.h"
#include "read/calltree.h"
#include "read/process.h"
#include "read/recording.h"

#define VISITING (NONE - 1)

/* A count of all threads may be so many times that of one; and no sum of such counts
 * overflows. */
#define MOST_THREADS 4096
#define MOST_IN_ALL  (1ull << 58)

const char *const lost_names[SHIM_LOST_CAUSES] = {
	[SHIM_LOST_SPACE] = "space",
	[SHIM_LOST_FILE_SIZE] = "file_size",
	[SHIM_LOST_MEMORY] = "memory",
	[SHIM_LOST_ACCESS] = "access",
	[SHIM_LOST_FORBIDDEN] = "forbidden",
	[SHIM_LOST_LIMIT] = "limit",
	[SHIM_LOST_OTHER] = "other",
};

const char *const lost_kinds[SHIM_LOST_KINDS] = {
	[SHIM_LOST_ALLOCATIONS] = "allocations",
	[SHIM_LOST_MAPPINGS] = "mappings",
	[SHIM_LOST_WAITS] = "waits",
	[SHIM_LOST_EXCEPTIONS] = "exceptions",
	[SHIM_LOST_SAMPLES] = "samples",
	[SHIM_LOST_FUNCTIONS] = "functions",
};

uint64_t lost_sum(const uint64_t lost[SHIM_LOST_CAUSES])
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < SHIM_LOST_CAUSES; i++)
		sum += lost[i];
	return sum;
}

bool model_has_damage(const struct model *model)
{
	const struct trace_damage *damage = &model->recording->trace_damage;

	return damage->missing || damage->damaged || model->damaged;
}

bool model_has_lost(const struct model *model)
{
	uint32_t i;

	for (i = 0; i < SHIM_LOST_KINDS; i++)
		if (lost_sum(model->lost_others[i]))
			return true;
	return model->lost != 0 || model_has_damage(model);
}

uint32_t model_add_path(struct model *model, uint32_t parent, uint32_t function,
			uint32_t thread)
{
	GROW(model->paths, model->path_count, model->path_room);
	model->paths[model->path_count] = (struct path){
		.parent = parent,
		.place = NONE,
		.function = function,
		.child = NONE,
		.sibling = NONE,
		.thread = thread,
		.min = INFINITY,
		.max = -INFINITY,
	};
	return model->path_count++;
}

static uint32_t find_path(struct build *build, uint32_t parent,
			  uint32_t function)
{
	struct model *model = build->model;
	uint64_t key = (uint64_t)parent << 32 | function;
	uint32_t path = map_add(&build->paths, key, model->path_count);

	if (path == model->path_count)
		model_add_path(model, parent, function,
			       model->paths[parent].thread);
	return path;
}

/* The flag of a key that is a place. */
#define PLACE_KEY 0x80000000u

/* The same for the function of a frame, at @at in the chains of frames. */
static uint32_t find_place_path(struct build *build, uint32_t parent,
				uint32_t at)
{
	struct model *model = build->model;
	const struct frame_chains *chains = &model->frames;
	uint32_t place, path;

	if (!model->by_line || at >= PLACE_KEY || !chains->places[at].file)
		return find_path(build, parent, chains->functions[at]);
	place = chains->first_equal[at];
	path = map_add(&build->paths,
		       (uint64_t)parent << 32 | PLACE_KEY | place,
		       model->path_count);
	if (path == model->path_count) {
		model_add_path(model, parent, chains->functions[at],
			       model->paths[parent].thread);
		model->paths[path].place = place;
	}
	return path;
}

/*
 * A tid that is reused with another name is another thread.  Threads have the
 * numbers of their keys.
 */
static uint32_t find_thread(struct build *build, uint32_t tid, const char *name)
{
	struct model *model = build->model;
	const char *key = keep_format("%u/%u/%s", build->process_index, tid,
				      name);
	uint32_t thread = names_add(&build->threads, key);

	if (thread < model->thread_count)
		return thread;
	GROW(model->threads, model->thread_count, model->thread_room);
	model->threads[model->thread_count++] = (struct thread){
		.process = build->process_index,
		.tid = tid,
		.name = strchr(strchr(key, '/') + 1, '/') + 1,
		.path = 0,
	};
	if (model->by_thread)
		model->threads[thread].path = model_add_path(model, 0, NONE,
							     thread);
	return thread;
}

/* False if a count cannot be; then the others are added. */
static bool add_lost(struct model *model, uint32_t thread,
		     const uint64_t lost[SHIM_LOST_CAUSES], uint64_t most)
{
	bool are_possible = true;
	uint32_t i;

	for (i = 0; i < SHIM_LOST_CAUSES; i++) {
		if (lost[i] > most) {
			are_possible = false;
			continue;
		}
		model->threads[thread].lost[i] += lost[i];
		model->lost_causes[i] += lost[i];
		model->lost += lost[i];
	}
	return are_possible;
}

/* A coroutine's root may lack a name: it belongs to the thread of the root
 * before it. */
static uint32_t add_root(struct build *build, const struct entry *entry,
			 uint32_t last)
{
	struct shim_thread_node node;
	char name[sizeof(node.name) + 1] = "";
	uint32_t tid, thread;

	memcpy(&node, build->file->data + entry->offset, sizeof(node));
	memcpy(name, node.name, sizeof(node.name));
	build->has_coroutines |= node.coroutine != 0;
	tid = (uint32_t)node.function;
	if (node.coroutine && !name[0] && last != NONE &&
	    build->model->threads[last].tid == tid)
		thread = last;
	else
		thread = find_thread(build, tid, name);
	if (!add_lost(build->model, thread, node.lost, build->count_limit))
		model_blame(&build->bad_counts, &build->bad_count_offset,
			    entry->offset);
	return thread;
}

static void add_roots(struct build *build)
{
	struct tree_file *file = build->file;
	uint32_t i, thread = NONE;

	build->orphan_thread = NONE;
	build->has_coroutines = false;
	for (i = 0; i < file->entry_count; i++) {
		if (file->entries[i].site != NONE)
			continue;
		thread = add_root(build, &file->entries[i], thread);
		file->entries[i].thread = thread;
		file->entries[i].path = build->model->threads[thread].path;
	}
}

static uint32_t orphan_thread(struct build *build)
{
	if (build->orphan_thread == NONE)
		build->orphan_thread = find_thread(build, build->file->tid, "");
	return build->orphan_thread;
}

/* The innermost recorded call of a path, or of a function that is off. */
static uint32_t find_hooked(const struct model *model, uint32_t path)
{
	while (model->paths[path].function != NONE &&
	       !model->functions[model->paths[path].function].has_hooks)
		path = model->paths[path].parent;
	return path;
}

/*
 * A function without hooks is shown if no function with hooks is below it:
 * otherwise paths consist of recorded calls.  If it calls itself, it is shown
 * once.
 */
static uint32_t find_function_below(struct build *build, uint32_t path,
				    uint32_t at)
{
	const struct model *model = build->model;
	uint32_t function = model->frames.functions[at];

	if (model->functions[function].is_hook)
		return path;
	/* (Calls have no line.) */
	if (model->functions[function].has_hooks)
		return find_path(build, find_hooked(model, path), function);
	if (model->paths[path].function == function)
		return path;
	return find_place_path(build, path, at);
}

/* Adds the functions of a frame, one below the other. */
static uint32_t find_frame_path(struct build *build, const struct entry *entry,
				uint32_t path)
{
	const struct tree_file *file = build->file;
	const struct recording *recording = build->model->recording;
	const struct frame_chains *chains = &build->model->frames;
	uint32_t chain = recording->sites[entry->site].function;
	uint32_t count, i = 0;
	const uint32_t *functions = frames_chain(chains, chain, &count);

	/* The frame of the recorded call itself, not of a callee. */
	if (entry->parent != NONE &&
	    file->entries[entry->parent].site != NONE &&
	    !recording->sites[file->entries[entry->parent].site].is_frame)
		i = frames_cut(build->model, path, functions, count);
	for (; i < count; i++)
		path = find_function_below(build, path,
					   frames_begin(chains, chain) + i);
	return path;
}

/* Adds the functions of a frame of the sampling profiler: its stacks are whole. */
static uint32_t find_sampled_path(struct build *build,
				  const struct entry *entry, uint32_t path)
{
	const struct model *model = build->model;
	const struct frame_chains *chains = &model->frames;
	uint32_t chain = model->recording->sites[entry->site].function, i;

	for (i = frames_begin(chains, chain); i < chains->ends[chain]; i++)
		path = find_place_path(build, path, i);
	return path;
}

static bool is_passed_over(const struct build *build, const struct entry *entry,
			   uint32_t parent, uint32_t function)
{
	struct shim_node node;

	if (build->file->is_sampled ||
	    build->model->paths[parent].function == NONE ||
	    !build->model->functions[function].is_new)
		return false;
	memcpy(&node, build->file->data + entry->offset, sizeof(node));
	return node.calls == 0 && node.frame == 0;
}

/*
 * Goes up from entry @n to one with a known path, and comes down again.  A
 * chain that leads nowhere, or in a circle, begins a tree of its own.
 */
static void find_entry_path(struct build *build, uint32_t n)
{
	struct tree_file *file = build->file;
	struct entry *entry;
	uint32_t depth = 0, path, thread, function;
	bool is_sampled = file->is_sampled;

	while (n != NONE && file->entries[n].path == NONE) {
		file->entries[n].path = VISITING;
		build->stack[depth++] = n;
		n = file->entries[n].parent;
	}
	if (n != NONE && file->entries[n].path == VISITING) {
		model_blame(&build->cycles, &build->cycle_offset,
			    file->entries[n].offset);
		n = NONE;
	}
	thread = n == NONE ? orphan_thread(build) : file->entries[n].thread;
	path = n == NONE ? build->model->threads[thread].path :
			   file->entries[n].path;
	while (depth > 0) {
		entry = &file->entries[build->stack[--depth]];
		function = build->model->recording->sites[entry->site].function;
		/* (Samples beside exact times have no frames.) */
		if (recording_is_frame(build->model->recording, entry))
			path = is_sampled ?
				       find_sampled_path(build, entry, path) :
			       build->has_budget ?
				       find_frame_path(build, entry, path) :
				       path;
		else if (!is_passed_over(build, entry, path, function))
			path = find_path(build, path, function);
		entry->path = path;
		entry->thread = thread;
	}
}

/* A thread's root is before its nodes. */
static void note_last(struct build *build, const struct entry *entry)
{
	struct shim_thread_node root;

	if (entry->site != NONE)
		return;
	memcpy(&root, build->file->data + entry->offset, sizeof(root));
	if (!root.coroutine)
		build->last = root.last;
}

static void add_node(struct build *build, const struct entry *entry)
{
	struct model *model = build->model;
	struct path *path = &model->paths[entry->path];
	struct path *parent = &model->paths[path->parent];
	struct thread *thread = &model->threads[entry->thread];
	struct shim_node node;

	memcpy(&node, build->file->data + entry->offset, sizeof(node));
	if (node.calls > build->count_limit) {
		model_blame(&build->bad_counts, &build->bad_count_offset,
			    entry->offset);
		return;
	}
	path->calls += node.calls;
	thread->calls += node.calls;
	model->calls += node.calls;
	if (node.is_older) {
		path->older++;
		thread->older++;
		model->older++;
	}
	if (node.frame) {
		path->open++;
		thread->open++;
		model->open++;
		if (build->process->end_source == END_UNKNOWN)
			model->open_until_when++;
	}
	if (build->has_budget) {
		budget_add_node(build, &node, entry);
		return;
	}
	if (node.coarse != 2 && build->process->has_meta) {
		if (node_times_are_possible(build->process, &node)) {
			node_times_add(build, &node, entry, path, parent);
			node_times_add_ranges(build, &node, entry->offset,
					      path);
			return;
		}
		model_blame(&build->bad_times, &build->bad_time_offset,
			    entry->offset);
	}
	path->untimed += node.calls;
	thread->untimed += node.calls;
	path->has_no_range = true;
}

/*
 * After the last tick that a hook saw, all time belongs to the innermost open
 * call: the thread hangs, or was killed.
 */
static void add_last(struct build *build, uint32_t root, uint32_t innermost)
{
	const struct process *process = build->process;
	const struct entry *entries = build->file->entries;
	struct shim_thread_node thread;
	struct shim_node node;
	struct path *path;
	uint64_t last;

	if (root == NONE || innermost == NONE || !process->meta.has_self ||
	    process->meta.is_cpu)
		return;
	memcpy(&node, build->file->data + entries[innermost].offset,
	       sizeof(node));
	path = &build->model->paths[entries[innermost].path];
	memcpy(&thread, build->file->data + entries[root].offset,
	       sizeof(thread));
	/* (Without a tick, or with one that the thread's first hook saw late:
	 * the time since the thread began.) */
	last = thread.last > thread.start ? thread.last : thread.start;
	if (last >= process->meta.first_clock && last < process->end_clock)
		(node.coarse ? &path->seen : &path->exactly.seen)->time +=
			process_ns(process, process->end_clock - last);
}

/* (The coarse clock lags behind the exact one: a later begin does not prove
 * that one call is inside another.) */
static bool *find_callers(const struct build *build)
{
	const struct tree_file *file = build->file;
	bool *calls = allocate(file->entry_count, sizeof(*calls));
	struct shim_node node;
	uint32_t i;

	for (i = 0; i < file->entry_count; i++) {
		if (file->entries[i].site == NONE ||
		    recording_is_frame(build->model->recording,
				       &file->entries[i]) ||
		    file->entries[i].parent == NONE)
			continue;
		memcpy(&node, file->data + file->entries[i].offset,
		       sizeof(node));
		if (node.frame)
			calls[file->entries[i].parent] = true;
	}
	return calls;
}

static void add_last_calls(struct build *build)
{
	const struct tree_file *file = build->file;
	uint32_t i, root = NONE, innermost = NONE;
	bool *calls = find_callers(build);
	struct shim_node node;
	uint64_t start = 0;

	for (i = 0; i < file->entry_count; i++) {
		if (recording_is_frame(build->model->recording,
				       &file->entries[i]))
			continue;
		memcpy(&node, file->data + file->entries[i].offset,
		       sizeof(node));
		/* (@calls of a root marks a coroutine.) */
		if (file->entries[i].site == NONE && node.calls == 0) {
			add_last(build, root, innermost);
			root = i;
			innermost = NONE;
			start = 0;
		} else if (file->entries[i].site != NONE && node.frame &&
			   !calls[i] && node.coarse != 2 &&
			   node.start >= start) {
			innermost = i;
			start = node.start;
		}
	}
	add_last(build, root, innermost);
	free(calls);
}

const char *counted_name(const struct model *model)
{
	return model->is_sampled ? "samples" : "calls";
}

/* The same record may be damaged in several ways. */
static uint64_t count_damage(const struct build *build)
{
	const uint64_t kinds[] = { build->file->damaged, build->bad_times,
				   build->bad_counts, build->bad_extras,
				   build->bad_memory };
	uint64_t most = build->cycles;
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		most = kinds[i] > most ? kinds[i] : most;
	return most;
}

static void say_damage(const struct build *build)
{
	const char *name = build->file->name;

	if (build->cycles)
		warn("%s: at offset %" PRIu64 ": a node is its own "
		     "ancestor%s; shown without callers",
		     name, build->cycle_offset,
		     more_like_it(build->cycles - 1));
	if (build->bad_times)
		warn("%s: at offset %" PRIu64
		     ": a time that cannot be%s; taken as not timed",
		     name, build->bad_time_offset,
		     more_like_it(build->bad_times - 1));
	if (build->bad_counts)
		warn("%s: at offset %" PRIu64
		     ": a count that cannot be%s; not added",
		     name, build->bad_count_offset,
		     more_like_it(build->bad_counts - 1));
	if (build->bad_extras)
		warn("%s: at offset %" PRIu64
		     ": the node's extra node is damaged%s",
		     name, build->bad_extra_offset,
		     more_like_it(build->bad_extras - 1));
	if (build->bad_memory)
		warn("%s: at offset %" PRIu64
		     ": the path of this memory is not in the file%s",
		     name, build->bad_memory_offset,
		     more_like_it(build->bad_memory - 1));
}

/* --- memory --- */

/* Finds the heap node of a process: the program may have written it since the
 * last reading. */
static bool find_heap(const struct process *process,
		      struct shim_heap_node *heap)
{
	uint32_t i;

	for (i = 0; i < process->file_count; i++) {
		const struct tree_file *file = &process->files[i];

		if (!file->heap)
			continue;
		memcpy(heap, file->data + file->heap, sizeof(*heap));
		return true;
	}
	return false;
}

static void find_heaps(struct model *model)
{
	const struct recording *recording = model->recording;
	struct shim_heap_node heap;
	uint32_t i;

	for (i = 0; i < recording->process_count; i++)
		if (find_heap(&recording->processes[i], &heap))
			memory_add_heap(model, &recording->processes[i], &heap);
}

static void add_memory(struct build *build, uint64_t offset)
{
	struct tree_file *file = build->file;
	struct shim_memory_node node;
	uint32_t entry;

	memcpy(&node, file->data + offset, sizeof(node));
	if (!memory_is_possible(&node, build->count_limit)) {
		model_blame(&build->bad_counts, &build->bad_count_offset,
			    offset);
		return;
	}
	entry = calltree_find(file, node.node);
	if (entry == NONE || !build->has_heap)
		model_blame(&build->bad_memory, &build->bad_memory_offset,
			    offset);
	else
		memory_add(build->model, file->entries[entry].path,
			   build->process, &node, &build->heap);
	if (entry != NONE)
		snapshots_note(build->model, calltree_address(file, offset),
			       file->entries[entry].path);
}

static void forget_entries(struct tree_file *file)
{
	free(file->memory);
	free(file->entries);
	free(file->slots);
	file->memory = NULL;
	file->entries = NULL;
	file->slots = NULL;
	file->memory_count = file->entry_count = 0;
}

static void add_file(struct build *build, struct tree_file *file)
{
	uint32_t i;

	build->file = file;
	for (i = 0; i < file->entry_count; i++)
		file->entries[i].path = NONE;
	build->cycles = build->bad_times = build->bad_extras = 0;
	build->bad_memory = build->bad_counts = 0;
	build->count_limit = process_count_limit(build->process);
	map_reserve(&build->paths, build->paths.count + file->entry_count);
	build->stack = allocate(file->entry_count, sizeof(*build->stack));
	add_roots(build);
	for (i = 0; i < file->entry_count; i++)
		if (file->entries[i].path == NONE)
			find_entry_path(build, i);
	free(build->stack);
	if (file->is_sampled)
		sampled_nodes_add(build);
	for (i = 0; i < file->entry_count && !file->is_sampled; i++) {
		note_last(build, &file->entries[i]);
		if (recording_is_frame(build->model->recording,
				       &file->entries[i]))
			budget_add_samples(build, &file->entries[i]);
		else if (file->entries[i].site != NONE)
			add_node(build, &file->entries[i]);
		if (i % 65536 == 0)
			progress("adding up", i, file->entry_count);
	}
	if (!file->is_sampled)
		add_last_calls(build);
	for (i = 0; i < file->memory_count; i++)
		add_memory(build, file->memory[i]);
	say_damage(build);
	build->model->damaged += count_damage(build);
	locks_place(build->model, build->process_index,
		    (uint32_t)(file - build->process->files));
	exceptions_place(build->model, build->process_index,
			 (uint32_t)(file - build->process->files));
	if (!build->model->recording->is_read_again)
		forget_entries(file);
}

static void blame_meta(struct build *build)
{
	warn("%s/%s/meta: a count of losses that cannot be; not added",
	     build->model->recording->path, build->process->name);
	build->model->damaged++;
}

/* Adds losses of threads that have no file. */
static void add_lost_threads(struct build *build)
{
	const struct shim_meta *meta = &build->process->meta;
	uint64_t all, most = process_count_limit(build->process);
	uint32_t i, cause, thread;
	bool are_possible = true;

	for (i = 0; i < SHIM_META_THREADS; i++) {
		all = 0;
		for (cause = 0; cause < SHIM_LOST_CAUSES; cause++)
			all |= meta->lost[i].lost[cause];
		if (!all)
			continue;
		thread = find_thread(build, meta->lost[i].tid, "");
		are_possible &= add_lost(build->model, thread,
					 meta->lost[i].lost, most);
	}
	if (!are_possible)
		blame_meta(build);
}

static const uint64_t *lost_of(const struct shim_meta *meta, uint32_t kind)
{
	return kind < SHIM_LOST_SAMPLES ?
		       meta->lost_others[kind] :
		       meta->lost_more[kind - SHIM_LOST_SAMPLES];
}

static void add_lost_others(struct build *build)
{
	const struct shim_meta *meta = &build->process->meta;
	struct model *model = build->model;
	uint64_t lost, most = process_count_limit(build->process);
	bool are_possible = true;
	uint32_t kind, cause;

	/* (All threads count here.) */
	most = most < MOST_IN_ALL / MOST_THREADS ? most * MOST_THREADS :
						   MOST_IN_ALL;
	for (kind = 0; kind < SHIM_LOST_KINDS; kind++)
		for (cause = 0; cause < SHIM_LOST_CAUSES; cause++) {
			lost = lost_of(meta, kind)[cause];
			if (lost > most)
				are_possible = false;
			else
				model->lost_others[kind][cause] += lost;
		}
	if (!are_possible)
		blame_meta(build);
}

/* A model of samples has them where others have calls. */
static void take_lost_samples(struct model *model)
{
	uint64_t *lost = model->lost_others[SHIM_LOST_SAMPLES];
	uint32_t cause;

	model->lost += lost_sum(lost);
	for (cause = 0; cause < SHIM_LOST_CAUSES; cause++) {
		model->lost_causes[cause] += lost[cause];
		lost[cause] = 0;
	}
}

/* The duration is that of the longest part: parts may be runs of other times. */
static void find_duration(struct model *model)
{
	const struct recording *recording = model->recording;
	double first = INFINITY, last = 0, begin, end;
	uint32_t i, part = NONE;

	for (i = 0; i < recording->process_count; i++) {
		const struct process *process = &recording->processes[i];

		if (!process->has_meta)
			continue;
		begin = (double)(process->meta.first_mono_ns +
				 process->shift_ns);
		end = begin +
		      process_ns(process, process->end_clock -
						  process->meta.first_clock);
		first = process->part == part ? fmin(first, begin) : begin;
		last = process->part == part ? fmax(last, end) : end;
		part = process->part;
		model->duration = fmax(model->duration, last - first);
	}
}

void model_begin(struct model *model, struct recording *recording,
		 const struct options *options, bool by_thread, bool is_sampled)
{
	uint32_t i;

	*model = (struct model){ .recording = recording,
				 .raw = options->raw,
				 .selection = &options->selection,
				 .by_thread = by_thread,
				 .by_line = options->by_line,
				 .is_sampled = is_sampled,
				 .bucket_ns = 1 };
	model_find_functions(model);
	if (model->by_line)
		frames_find_places(model);
	model_add_path(model, NONE, NONE, NONE);
	for (i = 0; i < recording->process_count; i++)
		if (recording->processes[i].has_meta) {
			model->bucket_ns = recording->processes[i].unit_ns;
			break;
		}
}

void model_add_up(struct model *model)
{
	struct recording *recording = model->recording;
	struct build build = { .model = model };
	bool is_sampled = model->is_sampled;
	struct process *process;
	uint32_t i;

	if (!is_sampled)
		find_heaps(model);
	for (build.process_index = 0;
	     build.process_index < recording->process_count;
	     build.process_index++) {
		process = &recording->processes[build.process_index];
		build.process = process;
		model->memory_older += process->meta.older_releases;
		model->orphans += process->meta.orphans;
		model->unwound += process->meta.unwound;
		build.has_heap = !is_sampled && find_heap(process, &build.heap);
		if (build.has_heap)
			memory_add_process(model, process, &build.heap);
		if (!is_sampled) {
			locks_list(model, build.process_index);
			exceptions_list(model, build.process_index);
		}
		if (build.has_heap)
			snapshots_begin(model, process);
		if (!is_sampled)
			budget_begin(&build);
		for (i = 0; i < process->file_count; i++)
			if (process->files[i].is_sampled == is_sampled)
				add_file(&build, &process->files[i]);
		if (!is_sampled)
			budget_end(&build);
		if (build.has_heap)
			snapshots_end(model, process);
		if (!is_sampled || !meta_counts_calls_apart(&process->meta))
			add_lost_threads(&build);
		add_lost_others(&build);
	}
	if (is_sampled)
		take_lost_samples(model);
	map_free(&build.paths);
	names_free(&build.threads);
}

void model_measure(struct model *model)
{
	if (model->is_sampled)
		sampled_nodes_add_up(model);
	budget_add_paths(model);
	find_duration(model);
	totals_measure(model);
	paths_limit(model);
	memory_measure(model);
	locks_measure(model);
	exceptions_measure(model);
	progress_end();
}

void model_build(struct model *model, struct recording *recording,
		 const struct options *options, bool by_thread, bool is_sampled)
{
	model_begin(model, recording, options, by_thread, is_sampled);
	model_add_up(model);
	model_measure(model);
}

void model_free(struct model *model)
{
	uint32_t i;

	for (i = 0; i < model->function_count; i++)
		free(model->functions[i].histogram);
	free(model->functions);
	free(model->objects);
	free(model->paths);
	free(model->threads);
}
