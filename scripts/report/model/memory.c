/*
 * Adds up the allocations of call paths, and makes the table of functions by
 * memory.  In every sum, a path counts once for each function on it, even if
 * the function is on it several times.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/options.h"
#include "model/totals.h"
#include "read/calltree.h"
#include "read/process.h"

/* --- adding up --- */

void memory_add_heap(struct model *model, const struct process *process,
		     const struct shim_heap_node *heap)
{
	uint64_t first = process->meta.first_clock;

	if (heap->has_lives && process->has_meta && !model->memory_tick_ns)
		model->memory_tick_ns = process_ns(process, process->meta.tick);
	if (heap->period > model->memory_period)
		model->memory_period = heap->period;
	if (model->has_memory && heap->peak_bytes <= model->memory_peak)
		return;
	model->has_memory = true;
	model->memory_peak_process = process;
	model->memory_peak = heap->peak_bytes;
	model->memory_peak_ns = process->has_meta && heap->peak_clock > first &&
						heap->peak_clock <=
							process->limit_clock ?
					process_ns(process,
						   heap->peak_clock - first) :
					0;
}

/* Addresses of programs are shorter. */
#define ADDRESS_BITS 48

static bool fits(uint64_t bytes, uint64_t blocks)
{
	return bytes >> ADDRESS_BITS <= blocks;
}

bool memory_is_possible(const struct shim_memory_node *node, uint64_t limit)
{
	uint64_t alive = node->peak_bytes | node->lost_bytes |
			 node->below_bytes;
	uint64_t blocks = node->peak_blocks | node->lost_blocks |
			  node->below_blocks;

	return !(alive >> ADDRESS_BITS) && !(blocks >> ADDRESS_BITS) &&
	       node->allocations <= limit && node->reallocations <= limit &&
	       node->temporary <= limit && node->mappings <= limit &&
	       fits(node->allocated_bytes, node->allocations) &&
	       fits(node->mapped_bytes, node->mappings);
}

/* One of the two values may have been stored without the other. */
static uint64_t without(uint64_t all, uint64_t gone)
{
	return all > gone ? all - gone : 0;
}

void memory_add_process(struct model *model, const struct process *process,
			const struct shim_heap_node *heap)
{
	model->memory_inherited += heap->inherited;
	model->memory_untold += heap->untold;
	model->memory_unknown += heap->unknown;
	model->memory_early_lost += heap->early_lost;
	model->memory_leaks = model->memory_heaps == 0 || model->memory_leaks ==
								  heap->leaks ?
				      heap->leaks :
				      SHIM_LEAKS_UNKNOWN;
	model->memory_heaps++;
	if (heap->leaks == SHIM_LEAKS_KNOWN) {
		model->memory_heaps_searched++;
		model->memory_leaks_ns += process_ns(process,
						     heap->leaks_clock);
	}
	model->memory_has_calls = model->memory_has_calls || heap->calls == 1;
}

void memory_sum(struct memory *to, const struct memory *memory)
{
	int i;

	to->allocations += memory->allocations;
	to->allocated += memory->allocated;
	to->reallocations += memory->reallocations;
	to->temporary += memory->temporary;
	to->live += memory->live;
	to->live_blocks += memory->live_blocks;
	to->lost += memory->lost;
	to->lost_blocks += memory->lost_blocks;
	to->below += memory->below;
	to->below_blocks += memory->below_blocks;
	to->peak += memory->peak;
	to->peak_blocks += memory->peak_blocks;
	to->mappings += memory->mappings;
	to->mapped += memory->mapped;
	to->mapped_live += memory->mapped_live;
	to->samples += memory->samples;
	for (i = 0; i < SHIM_BUCKETS; i++)
		to->sizes[i] += memory->sizes[i];
	for (i = 0; i <= SHIM_LIVES_BUCKETS; i++)
		to->lives[i] += memory->lives[i];
	to->lives_unknown += memory->lives_unknown;
}

/* Blocks that lived for a tick or longer are counted; the others are the
 * rest. */
static void read_lives(struct memory *memory, const struct process *process,
		       const struct shim_memory_node *node,
		       const struct shim_heap_node *heap)
{
	uint64_t gone = node->releases + node->other_releases, all = 0;
	struct shim_lives_node lives = { .function = 0 };
	int i;

	if (!heap->has_lives ||
	    (node->lives && !calltree_lives(process, node->lives, &lives))) {
		memory->lives_unknown = gone;
		return;
	}
	for (i = 0; i < SHIM_LIVES_BUCKETS; i++) {
		memory->lives[i + 1] = lives.bucket[i];
		all += lives.bucket[i];
	}
	memory->lives_unknown = lives.unknown;
	memory->lives[0] = without(gone, all + lives.unknown);
}

void memory_add(struct model *model, uint32_t path,
		const struct process *process,
		const struct shim_memory_node *node,
		const struct shim_heap_node *heap)
{
	bool kept = !heap->is_rising && node->epoch == heap->epoch;
	struct memory_part *part;
	struct memory *memory;

	GROW(model->memory_parts, model->memory_part_count,
	     model->memory_part_room);
	part = &model->memory_parts[model->memory_part_count++];
	*part = (struct memory_part){ .path = path };
	memory = &part->memory;
	memory->allocations = node->allocations;
	memory->allocated = node->allocated_bytes;
	memory->reallocations = node->reallocations;
	memory->temporary = node->temporary;
	memory->live = without(node->allocated_bytes,
			       node->released_bytes +
				       node->other_released_bytes);
	memory->live_blocks = without(node->allocations,
				      node->releases + node->other_releases);
	memory->mappings = node->mappings;
	memory->mapped = node->mapped_bytes;
	memory->mapped_live = without(node->mapped_bytes, node->unmapped_bytes);
	memory->samples = node->samples;
	memcpy(memory->sizes, node->sizes, sizeof(memory->sizes));
	read_lives(memory, process, node, heap);
	if (heap->leaks == SHIM_LEAKS_KNOWN) {
		memory->lost = node->lost_bytes;
		memory->lost_blocks = node->lost_blocks;
		memory->below = node->below_bytes;
		memory->below_blocks = node->below_blocks;
	}
	/* Peaks of other processes happened at other times. */
	if (process != model->memory_peak_process)
		return;
	memory->peak = kept ? node->peak_bytes : memory->live;
	memory->peak_blocks = kept ? node->peak_blocks : memory->live_blocks;
}

void memory_move(struct model *model, const uint32_t *own)
{
	uint32_t i, kept = 0;

	for (i = 0; i < model->memory_part_count; i++) {
		uint32_t path = own[model->memory_parts[i].path];

		if (path == NONE)
			continue;
		model->memory_parts[kept] = model->memory_parts[i];
		model->memory_parts[kept++].path = path;
	}
	model->memory_part_count = kept;
}

static void add_parts(struct model *model)
{
	uint32_t i;

	for (i = 0; i < model->memory_part_count; i++) {
		const struct memory_part *part = &model->memory_parts[i];
		uint32_t function = model->paths[part->path].function;

		memory_sum(&model->memory[part->path], &part->memory);
		memory_sum(&model->memory_all, &part->memory);
		memory_sum(function == NONE ? &model->memory_outside :
					      &model->function_memory[function],
			   &part->memory);
	}
	free(model->memory_parts);
	model->memory_parts = NULL;
}

/* Children have higher numbers than their parents. */
static void add_below(struct model *model)
{
	uint32_t i;

	for (i = 0; i < model->path_count; i++)
		model->memory_below[i] = model->memory[i];
	for (i = model->path_count - 1; i > 0; i--)
		memory_sum(&model->memory_below[model->paths[i].parent],
			   &model->memory_below[i]);
}

struct adding {
	struct model *model;
	uint32_t *active; /* by function: its open calls on the current path */
};

static bool enter_path(void *context, uint32_t number, uint32_t depth)
{
	struct adding *adding = context;
	struct model *model = adding->model;
	uint32_t function = model->paths[number].function;

	(void)depth;
	if (function != NONE && adding->active[function]++ == 0)
		memory_sum(&model->function_memory_below[function],
			   &model->memory_below[number]);
	return true;
}

static void leave_path(void *context, uint32_t number, uint32_t depth)
{
	struct adding *adding = context;
	uint32_t function = adding->model->paths[number].function;

	(void)depth;
	if (function != NONE)
		adding->active[function]--;
}

void memory_measure(struct model *model)
{
	struct adding adding = { .model = model };
	struct walk walk = { enter_path, leave_path, &adding };
	uint32_t functions = model->function_count, paths = model->path_count;

	if (!model->has_memory)
		return;
	model->memory = allocate(paths, sizeof(struct memory));
	model->memory_below = allocate(paths, sizeof(struct memory));
	model->function_memory = allocate(functions, sizeof(struct memory));
	model->function_memory_below = allocate(functions,
						sizeof(struct memory));
	add_parts(model);
	add_below(model);
	adding.active = allocate(functions, sizeof(*adding.active));
	model_walk(model, 0, &walk);
	free(adding.active);
}

uint64_t memory_value(const struct memory *memory, enum value value)
{
	switch (value) {
	case VALUE_BYTES: return memory->allocated;
	case VALUE_ALLOCATIONS: return memory->allocations;
	case VALUE_PEAK: return memory->peak;
	case VALUE_LEAKED: return memory->live;
	case VALUE_LOST: return memory->lost + memory->below;
	default: return 0;
	}
}

/* --- distributions --- */

double memory_life_ns(const struct model *model, int bucket)
{
	return bucket == 0 ? 0 : ldexp(model->memory_tick_ns, bucket - 1);
}
