/* What the memory profiler counted, added up. */
#ifndef REPORT_MODEL_MEMORY_H
#define REPORT_MODEL_MEMORY_H

#include <stdint.h>
#include <shim/format.h>

#include "model/options.h"

struct model;
struct process;

/* What the memory profiler counted, added up over some paths. */
struct memory {
	uint64_t allocations, allocated; /* bytes */
	uint64_t reallocations, temporary;
	uint64_t live, live_blocks;   /* at the end */
	uint64_t lost, lost_blocks;   /* of these: nothing points there, */
	uint64_t below, below_blocks; /* or only what is lost */
	uint64_t peak, peak_blocks;   /* when most lived */
	uint64_t mappings, mapped, mapped_live; /* by mmap; bytes */
	uint64_t samples;			/* 0: all were seen */
	uint64_t sizes[SHIM_BUCKETS];
	/* Of those that are gone: [0] less than a tick, then 2^(i-1) ticks and more. */
	uint64_t lives[1 + SHIM_LIVES_BUCKETS];
	uint64_t lives_unknown;
};

/* Of a path, while they are collected. */
struct memory_part {
	uint32_t path;
	struct memory memory;
};

/* First the heaps of all processes, of which one has the peak. */
void memory_add_heap(struct model *model, const struct process *process,
		     const struct shim_heap_node *heap);
void memory_add_process(struct model *model, const struct process *process,
			const struct shim_heap_node *heap);
void memory_add(struct model *model, uint32_t path,
		const struct process *process,
		const struct shim_memory_node *node,
		const struct shim_heap_node *heap);
/* What path i has is now that of path @own[i], or of none that is shown. */
void memory_move(struct model *model, const uint32_t *own);
void memory_measure(struct model *model);
/* The least that those of bucket @bucket have lived. */
double memory_life_ns(const struct model *model, int bucket);
uint64_t memory_value(const struct memory *memory, enum value value);

#endif
