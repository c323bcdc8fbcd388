/*
 * Which allocations are told when not all are wanted (heap/poisson.h): about one in so
 * many bytes.  What is not told is not noted either, so that most calls cost a
 * subtraction, and most releases a look at a small table.
 */
#ifndef SHIM_ALLOCATIONS_SAMPLED_H
#define SHIM_ALLOCATIONS_SAMPLED_H

#include <shim/allocations.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many bytes it takes on average until one is found; 0: all allocations are
 * told. */
extern uint64_t sampled_period __attribute__((visibility("hidden")));

/* Once, before anything is told; @seed 0: by chance. */
void sampled_start(uint64_t period, uint64_t seed);

/* Bytes of the thread until the next one; at first there are none. */
extern __thread int64_t sampled_until __attribute__((visibility("hidden")));

bool sampled_is_due(size_t size);

/* Whether a new block is told. */
static inline bool sampled_finds(size_t size)
{
	if (sampled_period == 0)
		return true;
	if ((sampled_until -= (int64_t)(size | (size == 0))) > 0)
		return false;
	return sampled_is_due(size);
}

void sampled_work_out_weight(struct shim_block *block);

/* Fills in what a block stands for, by its size and serial number. */
static inline void sampled_weigh(struct shim_block *block)
{
	block->weight = 1;
	block->weight_bytes = block->size;
	if (__builtin_expect(sampled_period != 0, 0))
		sampled_work_out_weight(block);
}

/* How many blocks with about this address are told. */
#define SAMPLED_SHIFT 51
extern uint16_t sampled_told[1u << (64 - SAMPLED_SHIFT)]
	__attribute__((visibility("hidden")));

static inline uint16_t *sampled_place(uintptr_t address)
{
	return &sampled_told[(address >> 3) * 0x9e3779b97f4a7c15ull >>
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
