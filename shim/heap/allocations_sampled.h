/*
 * Sampling of allocations (heap/poisson.h): one byte in each period is sampled on
 * average, and the block that contains it raises events.  The table has no other
 * blocks.  So most allocations cost one subtraction, and most releases cost one look-up
 * in a small table of counters.
 */
#ifndef SHIM_ALLOCATIONS_SAMPLED_H
#define SHIM_ALLOCATIONS_SAMPLED_H

#include <shim/allocations.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The average number of bytes from one sample to the next; 0: all allocations raise
 * events. */
extern uint64_t sampled_period __attribute__((visibility("hidden")));

/* Called once, before any event.  @seed 0: a random seed. */
void sampled_start(uint64_t period, uint64_t seed);

/* The table has no blocks any more. */
void sampled_forget(void);

/* Bytes that the thread allocates until its next sample; 0 in a new thread. */
extern __thread int64_t sampled_until __attribute__((visibility("hidden")));

bool sampled_is_due(size_t size);

/* Whether a new block is sampled. */
static inline bool sampled_finds(size_t size)
{
	if (sampled_period == 0)
		return true;
	if ((sampled_until -= (int64_t)(size | (size == 0))) > 0)
		return false;
	return sampled_is_due(size);
}

void sampled_work_out_weight(struct shim_block *block);

/* Computes the weight of a block from its size and serial number. */
static inline void sampled_weigh(struct shim_block *block)
{
	block->weight = 1;
	block->weight_bytes = block->size;
	if (__builtin_expect(sampled_period != 0, 0))
		sampled_work_out_weight(block);
}

/* The number of sampled blocks for each hash of an address. */
#define SAMPLED_SHIFT 51
extern uint16_t sampled_counts[1u << (64 - SAMPLED_SHIFT)]
	__attribute__((visibility("hidden")));

static inline uint16_t *sampled_place(uintptr_t address)
{
	return &sampled_counts[(address >> 3) * 0x9e3779b97f4a7c15ull >>
			       SAMPLED_SHIFT];
}

void sampled_change(uintptr_t address, int by);

static inline void sampled_add(uintptr_t address)
{
	if (__builtin_expect(sampled_period != 0, 0))
		sampled_change(address, 1);
}

static inline void sampled_remove(uintptr_t address)
{
	if (__builtin_expect(sampled_period != 0, 0))
		sampled_change(address, -1);
}

static inline bool sampled_may_have(uintptr_t address)
{
	return sampled_period == 0 ||
	       __atomic_load_n(sampled_place(address), __ATOMIC_RELAXED) != 0;
}

#endif
