/* The results of the memory profiler, added up. */
#ifndef REPORT_MODEL_MEMORY_H
#define REPORT_MODEL_MEMORY_H

#include <stdint.h>
#include <shim/format.h>

#include "model/options.h"

struct model;
struct process;

/* The results of the memory profiler, added up over some paths. */
struct memory {
	uint64_t allocations, allocated; /* bytes */
	uint64_t reallocations, temporary;
	uint64_t live, live_blocks;   /* at the end */
	uint64_t lost, lost_blocks;   /* of the left blocks: unreachable ones */
	uint64_t below, below_blocks; /* and those only reachable from these */
	uint64_t peak, peak_blocks;   /* at the peak of the process */
	uint64_t mappings, mapped, mapped_live; /* by mmap; bytes */
	/* number of samples; 0: every block was recorded */
	uint64_t samples;
	uint64_t sizes[SHIM_BUCKETS];
	/* Lifetimes of freed blocks: [0] less than a tick, then 2^(i-1) ticks
	 * and more. */
	uint64_t lives[1 + SHIM_LIVES_BUCKETS];
	uint64_t lives_unknown;
};

/* Memory of a path, while it is being collected. */
struct memory_part {
	uint32_t path;
	struct memory memory;
};

/* Adds @memory to @to. */
void memory_sum(struct memory *to, const struct memory *memory);

/* Call this first for the heaps of all processes, one of which has the peak. */
void memory_add_heap(struct model *model, const struct process *process,
		     const struct shim_heap_node *heap);
void memory_add_process(struct model *model, const struct process *process,
			const struct shim_heap_node *heap);
/* Whether no thread with at most @limit events can have more; the rest is damage. */
bool memory_is_possible(const struct shim_memory_node *node, uint64_t limit);
void memory_add(struct model *model, uint32_t path,
		const struct process *process,
		const struct shim_memory_node *node,
		const struct shim_heap_node *heap);
/* The memory of path i becomes that of path @own[i], or of no shown path. */
void memory_move(struct model *model, const uint32_t *own);
void memory_measure(struct model *model);
/* The shortest lifetime in bucket @bucket. */
double memory_life_ns(const struct model *model, int bucket);
uint64_t memory_value(const struct memory *memory, enum value value);

#endif
